"""Erasing a user from the streams: the log, dead letters and topics."""
