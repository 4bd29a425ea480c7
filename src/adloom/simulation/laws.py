"""The laws, checked from outside: what readers know, against what the tables say. Nothing else is known here."""

from collections.abc import Collection, Mapping
from datetime import date
from typing import NamedTuple


class EventKey(NamedTuple):
    """What makes two reports the same event."""

    kind: str
    correlation_id: str


class Witness:
    """What the readers have seen: what they sent, and what was accepted."""

    def __init__(self) -> None:
        self.sent: set[EventKey] = set()
        self.accepted: set[EventKey] = set()


def counting_violations(
    witness: Witness, rows: Collection[EventKey], totals: Mapping[tuple[date, str], int]
) -> list[str]:
    """Law 1: an accepted event is counted exactly once, and nothing that was never sent is counted."""
    counted = list(rows)
    violations = [
        f"{key} was accepted and is not counted" for key in sorted(witness.accepted.difference(counted))
    ]
    violations += [f"{key} is counted and was never sent" for key in sorted(set(counted) - witness.sent)]
    for kind in ("impression", "click"):
        rows_of_kind = sum(key.kind == kind for key in set(counted))
        total = sum(count for (_, of_kind), count in totals.items() if of_kind == kind)
        if total != rows_of_kind:
            violations.append(f"{rows_of_kind} events of kind {kind} are counted as {total}")
    return violations


def burial_violations(spoiled: Collection[bytes], buried: Collection[bytes]) -> list[str]:
    """Nothing vanishes: an entry that is no event is found among the dead letters, and nothing else is."""
    lost = [f"{entry!r} was never buried" for entry in sorted(set(spoiled) - set(buried))]
    return lost + [f"{entry!r} was buried alive" for entry in sorted(set(buried) - set(spoiled))]
