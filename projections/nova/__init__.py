"""Nova runs: the rules of a run, its entries folded, and the files that show it."""
