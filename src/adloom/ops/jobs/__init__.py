"""The queues of background jobs: what waits, runs, was done and has failed; and trying again."""
