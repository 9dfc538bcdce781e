"""The kinds that an entry can have: one declaration each, in the module of its domain word.

Nothing is imported here: a hot command pays for the kinds that it writes, and for no others.
"""
