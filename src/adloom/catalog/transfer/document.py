"""A document before anybody has looked at what it says: lists of items, each still JSON, with its place."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from adloom.catalog.transfer.kind import KIND_NAMED, Kind
from adloom.core.errors import FieldProblem, ValidationFailedError

FORMAT: Final = "adloom-catalog"
FORMAT_VERSION: Final = 1
ITEMS_MAX: Final = 500_000  # Far beyond, memory would run out before a client has any use of the answer.

_decode_lists = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_item = msgspec.json.Decoder(dict[str, Any]).decode


class RawItem(msgspec.Struct, frozen=True):
    """One item: its kind, its place in what was sent, and its JSON."""

    kind: Kind
    path: str
    raw: bytes | msgspec.Raw

    def said(self) -> dict[str, Any]:
        """Decode the item; raises DecodeError."""
        return _decode_item(self.raw)


def read_json(body: bytes) -> list[RawItem]:
    """Take a document apart, without looking into its items yet."""
    try:
        lists = _decode_lists(body)
        return list(_items(lists))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"must be one JSON object with lists of things: {error}"
        raise ValidationFailedError(
            f"The document {message}.", errors=[FieldProblem("body", message)]
        ) from error


def write_json(lists: Mapping[Kind, Sequence[Mapping[str, Any]]]) -> bytes:
    """Put a document together: an item a line, so that two documents can be compared."""
    parts = [f'{{\n"format": "{FORMAT}",\n"version": {FORMAT_VERSION}'.encode()]
    for kind, items in lists.items():
        lines = b",\n".join(msgspec.json.encode(item) for item in items)
        parts.append(b'"%s": [%s]' % (kind.name.encode(), b"\n%s\n" % lines if lines else b""))
    return b",\n".join(parts) + b"\n}\n"


def _items(lists: Mapping[str, msgspec.Raw]) -> Iterator[RawItem]:
    problems: list[FieldProblem] = []
    count = 0
    for name, raw in lists.items():
        if name == "format" and bytes(raw) != msgspec.json.encode(FORMAT):
            problems.append(FieldProblem(name, f"must be {FORMAT}"))
        elif name == "version" and bytes(raw) != msgspec.json.encode(FORMAT_VERSION):
            problems.append(FieldProblem(name, f"must be {FORMAT_VERSION}"))
        elif name in KIND_NAMED:
            items = _decode_items(raw)
            count += len(items)
            check_count(count)
            for place, item in enumerate(items):
                yield RawItem(KIND_NAMED[name], f"{name}[{place}]", item)
        elif name not in {"format", "version"}:
            known = ", ".join(KIND_NAMED)
            problems.append(FieldProblem(name[:100], f"is not a list that we know; there are {known}"))
    if problems:
        raise ValidationFailedError("The document has parts that we do not know.", errors=problems)


def check_count(count: int) -> None:
    """Refuse more items than one import may have."""
    if count > ITEMS_MAX:
        raise ValidationFailedError(
            f"The document has more than {ITEMS_MAX} items. Send it in parts.",
            errors=[FieldProblem("body", f"must have at most {ITEMS_MAX} items")],
        )
