"""What each process shows to Prometheus and in its heartbeat."""
