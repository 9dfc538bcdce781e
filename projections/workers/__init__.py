"""The workers' files: their format and tables."""
