"""What the ledger's counts add up to, for people."""
