"""``python -m torture``: kill, starve, corrupt and confuse the tools, and count what is lost."""
