"""The hot routes of delivery beside references."""
