"""E-mail: its settings, its queue, and sending it by SMTP."""
