"""Training of the nets on recorded or simulated market days; only commands and the simulator import it."""
