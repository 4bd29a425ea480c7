"""What the sample has made, by its ids: kept in the data directory, so that it can be taken away and nothing else."""

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

FILE_NAME: Final = "sample.json"


class State(StrEnum):
    """How far the sample is: what was begun and not ended is ended by the next command."""

    LOADING = "loading"
    THERE = "there"
    REMOVING = "removing"
    REMOVED = "removed"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The ids of everything that was made, by kind and by the sample's own name for it.

    Of a sample that was removed it has what had to stay because something else uses it.
    """

    state: State
    loaded_at: datetime
    things: dict[str, dict[str, str]]

    def ids_of(self, kind: str) -> dict[str, str]:
        """Give the ids of a kind, by name."""
        return self.things.get(kind, {})

    def in_state(self, state: State) -> "Manifest":
        """Give the same in another state."""
        return msgspec.structs.replace(self, state=state)

    def with_thing(self, kind: str, key: str, made_id: str) -> "Manifest":
        """Give the same with one thing more."""
        things = {**self.things, kind: {**self.ids_of(kind), key: made_id}}
        return msgspec.structs.replace(self, things=things)

    def without(self, kind: str, key: str) -> "Manifest":
        """Give the same with one thing less."""
        left = {name: made_id for name, made_id in self.ids_of(kind).items() if name != key}
        things = {other: ids for other, ids in {**self.things, kind: left}.items() if ids}
        return msgspec.structs.replace(self, things=things)

    @property
    def count(self) -> int:
        """How many things there are."""
        return sum(len(ids) for ids in self.things.values())
