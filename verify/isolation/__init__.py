"""What agents and the reviewer were shown, and what they repeated."""
