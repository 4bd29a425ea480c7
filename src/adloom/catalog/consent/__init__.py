"""Consent of publishers: what campaigns ask for and show on placements, and what is decided about it."""
