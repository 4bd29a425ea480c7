"""This process's budget leases: what it may still spend without asking."""
