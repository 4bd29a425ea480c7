"""Actors on several machines: NATS JetStream decides which worker runs a shard, and carries the messages.

Correctness does not rest on it: the version of a state decides whose write counts, and the id of a message that it is
applied once. So NATS may lose everything: senders send again what was not applied.
"""
