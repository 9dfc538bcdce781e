"""A witness: a folder that remembers what it cosigned, and a server before it.

It knows nothing of teams: it can stand on another machine, without any ledger.
"""
