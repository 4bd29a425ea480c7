"""Logs, metrics, traces and heartbeats."""
