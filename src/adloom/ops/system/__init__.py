"""How the installation itself is doing: processes, ledger, dead letters, settings."""
