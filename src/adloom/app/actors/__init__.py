"""The actors of a worker, in its own process or shared with other workers."""
