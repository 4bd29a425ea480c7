"""What happened, in order, as one short text: equal texts are equal runs."""

import asyncio
from hashlib import blake2b


class Trace:
    """Folds every event of a run into a digest; keeping them would take the memory of days."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self.steps = 0

    def note(self, what: str, detail: bytes = b"") -> None:
        """Add an event, with its moment."""
        moment = asyncio.get_running_loop().time()
        self._hash.update(b"%d %b %b\n" % (round(moment * 1e6), what.encode(), detail))
        self.steps += 1

    @property
    def digest(self) -> str:
        """The text."""
        return self._hash.hexdigest()
