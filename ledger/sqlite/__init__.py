"""The ledger in a SQLite database: schema, store, reader, erasure, repair."""
