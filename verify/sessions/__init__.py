"""Recorded sessions of agents: readers of what their programs leave, and what they show."""
