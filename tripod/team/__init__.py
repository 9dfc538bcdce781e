"""One team: where it is, opening it, acting on it, keeping its files."""
