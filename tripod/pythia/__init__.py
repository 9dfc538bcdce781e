"""The independent reviewer: when a review is due, its prompt, its run, its record."""
