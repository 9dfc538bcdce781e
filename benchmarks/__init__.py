"""Measures tripod beside the floors of the machine it runs on: ``python -m benchmarks``.

Nothing imports it but its own test; it imports all four packages, as their users do.
"""
