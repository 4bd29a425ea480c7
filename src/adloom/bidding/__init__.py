"""How high a campaign bids: multipliers by window, from a campaign's own counters. Pure; NumPy only where a net runs."""
