"""Workers: start, end, read."""
