"""Ad accounts: connections to accounts on platforms."""
