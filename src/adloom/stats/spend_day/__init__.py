"""How the spend of a day went, against what may be spent by each moment of it."""
