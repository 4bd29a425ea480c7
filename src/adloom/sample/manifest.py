"""The ids of what the sample has created, kept in the data directory so that exactly that can be removed."""

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

FILE_NAME: Final = "sample.json"


class State(StrEnum):
    """The state of the sample; the next command finishes what was begun."""

    LOADING = "loading"
    THERE = "there"
    REMOVING = "removing"
    REMOVED = "removed"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The ids of everything that was created, by kind and by the sample's own key.

    After a removal it lists what stayed because something else uses it.
    """

    state: State
    loaded_at: datetime
    things: dict[str, dict[str, str]]

    def get_ids(self, kind: str) -> dict[str, str]:
        return self.things.get(kind, {})

    def with_state(self, state: State) -> "Manifest":
        return msgspec.structs.replace(self, state=state)

    def with_thing(self, kind: str, key: str, made_id: str) -> "Manifest":
        things = {**self.things, kind: {**self.get_ids(kind), key: made_id}}
        return msgspec.structs.replace(self, things=things)

    def without(self, kind: str, key: str) -> "Manifest":
        left = {name: made_id for name, made_id in self.get_ids(kind).items() if name != key}
        things = {other: ids for other, ids in {**self.things, kind: left}.items() if ids}
        return msgspec.structs.replace(self, things=things)

    @property
    def count(self) -> int:
        return sum(len(ids) for ids in self.things.values())
