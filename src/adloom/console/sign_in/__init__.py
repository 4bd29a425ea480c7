"""How people get in: log-in, links for passwords, the second factor, single sign-on."""
