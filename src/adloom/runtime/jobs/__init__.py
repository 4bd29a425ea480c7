"""Jobs: work that is put into a queue, started by the clock or by others, tried again, and buried."""
