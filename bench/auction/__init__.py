"""What an auction costs, and whether it is right: `python -m bench.auction`."""
