"""What the ledger knows of the other replicas of its team, and keeps of theirs: tables."""
