"""The audit trail: who changed what, when, from what to what."""
