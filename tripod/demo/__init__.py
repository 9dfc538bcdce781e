"""The main job end to end on a real team's files: adopt, verify, tamper, crash, recover.

Everything happens in a temporary copy; ``tripod.cli.team`` prints what ``demo`` tells.
"""
