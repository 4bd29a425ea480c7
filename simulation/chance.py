"""Seeded randomness, and the digest that shows that equal seeds give equal runs."""

import asyncio
from hashlib import blake2b
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


class Trace:
    """Hashes every event of a run; storing them would take too much memory over days."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self.steps = 0

    def note(self, what: str, detail: bytes = b"") -> None:
        moment = asyncio.get_running_loop().time()
        self._hash.update(b"%d %b %b\n" % (round(moment * 1e6), what.encode(), detail))
        self.steps += 1

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()
