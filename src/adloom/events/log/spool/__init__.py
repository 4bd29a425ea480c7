"""Where events wait on this machine's disk while the ledger cannot be reached."""
