"""The schema, forward only, one concern a file; applied by `runtime.migrate`."""
