"""Uploaded files for visitors."""
