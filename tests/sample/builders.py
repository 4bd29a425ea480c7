"""Samples for tests."""

import functools
import random
from datetime import UTC, datetime
from itertools import count

from adloom.sample.content.document import choose_ids
from adloom.sample.manifest import Manifest, State

LOADED_AT = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def a_manifest(*, state: State = State.THERE, loaded_at: datetime = LOADED_AT) -> Manifest:
    return Manifest(
        state=state, loaded_at=loaded_at, things={kind: dict(ids) for kind, ids in _ids().items()}
    )


@functools.cache
def _ids() -> dict[str, dict[str, str]]:
    numbers = count(1)
    return choose_ids(lambda: f"01890000-0000-7000-8000-{next(numbers):012x}", {})


def a_chance(seed: int = 1) -> random.Random:
    return random.Random(seed)  # noqa: S311 - the same visitors in every run
