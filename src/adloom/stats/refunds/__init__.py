"""Refunds: what admins give back to campaigns."""
