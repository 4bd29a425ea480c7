"""Where events wait on this machine's disk while the event log cannot be reached."""
