"""Sell pages: where campaigns lead to."""
