"""Accounts: the advertisers and publishers that things belong to."""
