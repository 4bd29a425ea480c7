"""A document taken apart: lists of items, each still JSON, with its place; and which rows an item is about and names."""

# pure

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.core.errors import FieldProblem, ValidationFailedError, make_field_error
from adloom.resource.spec import DocumentLists, ResourceSpec

FORMAT: Final = "adloom-catalog"
FORMAT_VERSION: Final = 1
ITEMS_MAX: Final = 500_000  # Far beyond, memory would run out before a client has any use of the answer.

_decode_lists = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_item = msgspec.json.Decoder(dict[str, Any]).decode


class RawItem(msgspec.Struct, frozen=True):
    """One item: its list, its place in what was sent, and its JSON."""

    spec: ResourceSpec[Any]
    path: str
    raw: bytes | msgspec.Raw

    def decode(self) -> dict[str, Any]:
        """Decode the item; raises DecodeError."""
        return _decode_item(self.raw)


def read_json(body: bytes, known: DocumentLists) -> list[RawItem]:
    """Take a document apart, without looking into its items yet."""
    try:
        return list(_iterate_items(_decode_lists(body), known))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"must be one JSON object with lists of things: {error}"
        raise make_field_error("body", message, f"The document {message}.") from error


def write_json(lists: Mapping[ResourceSpec[Any], Sequence[Mapping[str, Any]]]) -> bytes:
    """Write a document: an item a line, so that two documents can be compared."""
    parts = [f'{{\n"format": "{FORMAT}",\n"version": {FORMAT_VERSION}'.encode()]
    for spec, items in lists.items():
        lines = b",\n".join(msgspec.json.encode(item) for item in items)
        parts.append(b'"%s": [%s]' % (spec.list_name.encode(), b"\n%s\n" % lines if lines else b""))
    return b",\n".join(parts) + b"\n}\n"


def _iterate_items(lists: Mapping[str, msgspec.Raw], known: DocumentLists) -> Iterator[RawItem]:
    problems: list[FieldProblem] = []
    count = 0
    for name, raw in lists.items():
        if name == "format" and bytes(raw) != msgspec.json.encode(FORMAT):
            problems.append(FieldProblem(name, f"must be {FORMAT}"))
        elif name == "version" and bytes(raw) not in {b"%d" % FORMAT_VERSION, b"%d.0" % FORMAT_VERSION}:
            problems.append(FieldProblem(name, f"must be {FORMAT_VERSION}"))
        elif name in known.by_name:
            try:
                items = _decode_items(raw)
            except msgspec.ValidationError:
                problems.append(FieldProblem(name, "must be a list"))
                continue
            count += len(items)
            check_count(count)
            for place, item in enumerate(items):
                yield RawItem(known.by_name[name], f"{name}[{place}]", item)
        elif name not in {"format", "version"}:
            names = ", ".join(known.by_name)
            problems.append(FieldProblem(name[:100], f"is not a list that we know; there are {names}"))
    if problems:
        raise ValidationFailedError("The document has parts that we do not know.", errors=problems)


def check_count(count: int) -> None:
    """Raise for more items than one import may have."""
    if count > ITEMS_MAX:
        sentence = f"The document has more than {ITEMS_MAX} items. Send it in parts."
        raise make_field_error("body", f"must have at most {ITEMS_MAX} items", sentence)


KEY: Final = "key"
KEY_LENGTH_MAX: Final = 255
INT4_MAX: Final = 2**31 - 1


class ItemHead(msgspec.Struct, frozen=True, kw_only=True):
    """What an item says about which row it is, and about those that it names, by field."""

    item: RawItem
    key: str | None
    names: Mapping[str, Any]

    @property
    def spec(self) -> ResourceSpec[Any]:
        return self.item.spec

    def iterate_names(self) -> Iterator[tuple[ResourceSpec[Any], Any]]:
        """Yield the lists and values by which it names rows, itself first."""
        for field in ("id", self.spec.natural_key):
            if field is not None and field in self.names:
                yield self.spec, self.names[field]
        for field, other in self.spec.references.items():
            if field in self.names:
                yield other, self.names[field]


def read_heads(items: Iterable[RawItem]) -> tuple[list[ItemHead], list[FieldProblem]]:
    """Read what items are about, before it is known what is there."""
    heads: list[ItemHead] = []
    problems: list[FieldProblem] = []
    for item in items:
        spec = item.spec
        try:
            said = item.decode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            problems.append(FieldProblem(item.path, "must be an object"))
            continue
        key = said.get(KEY)
        if key is not None and not (isinstance(key, str) and 0 < len(key) <= KEY_LENGTH_MAX):
            message = f"must be a text of 1 to {KEY_LENGTH_MAX} characters"
            problems.append(FieldProblem(f"{item.path}.{KEY}", message))
            key = None
        fields = {*spec.identity, *spec.references, *([spec.natural_key] if spec.natural_key else [])}
        names = {
            name: said[spec.aliases[name]] for name in fields if said.get(spec.aliases[name]) is not None
        }
        heads.append(ItemHead(item=item, key=key, names=names))
    return heads, problems


def parse_id(spec: ResourceSpec[Any], value: object) -> Any:  # noqa: ANN401 - a UUID or an integer
    """Return an id as a list has it, or None for what is none."""
    if spec.identity_type == "uuid":
        try:
            return value if isinstance(value, UUID) else UUID(value) if isinstance(value, str) else None
        except ValueError:
            return None
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= len(str(INT4_MAX)):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= INT4_MAX:
        return None
    return int(value) if value == int(value) else None


class ImportStep(StrEnum):
    """What an import does: it writes when all of its items are checked."""

    READING = "reading"
    CHECKING = "checking"
    WRITING = "writing"


class ImportProgress(msgspec.Struct):
    """The step of an import, and how many items are done; of how many is not known while it reads."""

    step: ImportStep = ImportStep.READING
    done: int = 0
    total: int = 0

    def begin(self, step: ImportStep, total: int) -> None:
        self.step, self.done, self.total = step, 0, total
