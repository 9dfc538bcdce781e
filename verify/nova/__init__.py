"""Nova runs judged: each is walked through its entries, and held against the rules."""
