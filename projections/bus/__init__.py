"""The event queue as files: their format, their tables, what others change in them."""
