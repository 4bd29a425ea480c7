"""Conversions: what visitors did after a click, as the shop reports it."""
