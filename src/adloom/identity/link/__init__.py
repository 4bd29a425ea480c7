"""Links that work once: an invited person, or one who has forgotten the password, chooses a new one."""
