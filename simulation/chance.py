"""The only source of seeded randomness."""

from random import Random  # noqa: TID251 - the one home of it
from typing import Final
from uuid import UUID

_VERSION_7: Final = 0x7 << 76
_VARIANT: Final = 0b10 << 62


def seeded(seed: int, purpose: str) -> Random:
    """One source per purpose: what one draws does not shift what another draws."""
    return Random(f"{seed}:{purpose}")  # noqa: S311 - no secret is made of it


class SeededIds:
    """Identifiers that look like UUIDv7, later ones sorting after earlier ones."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._chance = seeded(seed, purpose)
        self._made = 0

    def new(self) -> UUID:
        self._made += 1
        return UUID(int=(self._made << 80) | _VERSION_7 | _VARIANT | self._chance.getrandbits(62))

    def new_opaque(self) -> UUID:
        return self.new()
