"""The machine's own chance: what a simulation passes a seeded one for."""

from random import SystemRandom  # noqa: TID251 - the one home of it

from adloom.core.random import Chance


def system_chance() -> Chance:
    return SystemRandom()
