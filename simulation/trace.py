"""A digest of everything that happened, in order: equal digests are equal runs."""

import asyncio
from hashlib import blake2b


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
