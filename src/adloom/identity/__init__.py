"""Who may use the control plane: users, their sessions, and the API keys of machines."""
