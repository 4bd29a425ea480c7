"""Secrets that people and programs show: access tokens, passwords, API keys."""
