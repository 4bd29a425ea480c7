"""The machine's own chance: what a simulation passes a seeded one for."""

from random import Random, SystemRandom  # noqa: TID251 - the one home of it

from adloom.core.random import Chance


def make_system_chance() -> Chance:
    return SystemRandom()


def make_chance() -> Chance:
    """Return chance for what is no secret, seeded by the machine: a draw costs no system call."""
    return Random(SystemRandom().getrandbits(64))  # noqa: S311 - no secret is made of it


def seed_chance(seed: str) -> Chance:
    """Return chance that is the same for the same seed, in every process."""
    return Random(seed)  # noqa: S311 - no secret is made of it
