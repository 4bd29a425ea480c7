"""Which things a document's items are about, and which they name: as much as is needed to ask what is there."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.catalog.transfer.document import RawItem
from adloom.catalog.transfer.kind import KIND_NAMED, Kind
from adloom.core.errors import FieldProblem
from adloom.targeting.values import normalize_domain

KEY: Final = "key"
KEY_LENGTH_MAX: Final = 255
INT4_MAX: Final = 2**31 - 1


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What an item says about which thing it is, and about those that it names, by field."""

    item: RawItem
    key: str | None
    names: Mapping[str, Any]

    @property
    def kind(self) -> Kind:
        """Its kind."""
        return self.item.kind

    def named(self) -> Iterator[tuple[Kind, Any]]:
        """Tell the kinds and values by which it names things, itself first."""
        for field in ("id", self.kind.natural):
            if field is not None and field in self.names:
                yield self.kind, self.names[field]
        for field, other in self.kind.references.items():
            if field in self.names:
                yield KIND_NAMED[other], self.names[field]


def heads_of(items: Iterable[RawItem]) -> tuple[list[Head], list[FieldProblem]]:
    """Look at what items are, before it is known what is there."""
    heads: list[Head] = []
    problems: list[FieldProblem] = []
    for item in items:
        kind = item.kind
        try:
            said = item.said()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            problems.append(FieldProblem(item.path, "must be an object"))
            continue
        key = said.get(KEY)
        if key is not None and not (isinstance(key, str) and 0 < len(key) <= KEY_LENGTH_MAX):
            message = f"must be a text of 1 to {KEY_LENGTH_MAX} characters"
            problems.append(FieldProblem(f"{item.path}.{KEY}", message))
            key = None
        fields = {*kind.table.identity, *kind.references, *([kind.natural] if kind.natural else [])}
        names = {
            name: said[kind.aliases[name]] for name in fields if said.get(kind.aliases[name]) is not None
        }
        heads.append(Head(item=item, key=key, names=names))
    return heads, problems


def nature_of(kind: Kind, value: str) -> str:
    """Write a natural key as the catalog has it."""
    return (normalize_domain(value) or value) if kind.natural == "domain" else value


def identity_value(kind: Kind, value: object) -> Any:  # noqa: ANN401 - a UUID or an integer
    """Read an id, or give None for what is none."""
    if kind.table.identity_type == "uuid":
        try:
            return value if isinstance(value, UUID) else UUID(value) if isinstance(value, str) else None
        except ValueError:
            return None
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < len(str(INT4_MAX)):
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT4_MAX
    return value if is_number else None
