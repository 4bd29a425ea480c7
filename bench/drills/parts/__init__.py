"""Drills of every other part: two of delivery, control and worker, and a Valkey with a replica and sentinels."""
