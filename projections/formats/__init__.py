"""The bytes of the original tools' files, read and written: one format a module, all pure.

Bytes or text in, a value out: no clock, disk, locale or time zone, and nothing but light modules of
the standard library, because the hot commands import them. They import nothing of ours outside this
folder. Each format has both directions in one file; ``moments`` and ``words`` are shared by them.
"""
