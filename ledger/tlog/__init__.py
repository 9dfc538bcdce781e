"""The transparency log over the ledger: signed notes, seals, tiles, proofs, witnesses, stamps."""
