"""The decision logs as files: their format, their tables, what others write into them."""
