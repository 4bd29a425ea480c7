"""Requests to hosts that strangers name: only public addresses, and a bound on everything that comes back."""
