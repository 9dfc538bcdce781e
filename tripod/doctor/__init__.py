"""What is wrong with a team directory, what would be done, and doing what existing acts do safely.

``examine`` only reads, and waits for nobody but for a moment. ``mend`` goes through the acts that
any command goes through (``sync``, ``rebuild``), in the writer's place; it never touches evidence:
logs of workers, transcripts, what the ledger holds.
"""
