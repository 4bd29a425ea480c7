"""What is recorded of an auction: its funnel, its bids, and sending them to the event log."""
