"""A day's spend by hour, against what may be spent by then."""
