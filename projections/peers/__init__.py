"""What the ledger knows of the other replicas of its team: a table."""
