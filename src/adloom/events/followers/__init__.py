"""What projections in Valkey that follow the event tables have in common."""
