"""The outside world, without any domain: settings, connections, HTTP, processes, logs."""
