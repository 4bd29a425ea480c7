"""The settings of processes that no request waits for: crawler and classifier."""
