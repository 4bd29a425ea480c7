"""When something may run: pure rules of time, without any I/O."""
