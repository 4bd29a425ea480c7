"""Which rows a document's items are about, and which they name: as much as is needed to load them."""

# pure

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.core.errors import FieldProblem
from adloom.resource.list_spec import DocumentLists, ListSpec
from adloom.resource.transfer.document import RawItem

KEY: Final = "key"
KEY_LENGTH_MAX: Final = 255
INT4_MAX: Final = 2**31 - 1


class ItemHead(msgspec.Struct, frozen=True, kw_only=True):
    """What an item says about which row it is, and about those that it names, by field."""

    item: RawItem
    key: str | None
    names: Mapping[str, Any]

    @property
    def spec(self) -> ListSpec:
        return self.item.spec

    def iterate_names(self, lists: DocumentLists) -> Iterator[tuple[ListSpec, Any]]:
        """Yield the lists and values by which it names rows, itself first."""
        for field in ("id", self.spec.natural_key):
            if field is not None and field in self.names:
                yield self.spec, self.names[field]
        for field, other in self.spec.references.items():
            if field in self.names:
                yield lists.by_name[other], self.names[field]


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


def parse_id(spec: ListSpec, value: object) -> Any:  # noqa: ANN401 - a UUID or an integer
    """Return an id as a list has it, or None for what is none."""
    if spec.id_type == "uuid":
        try:
            return value if isinstance(value, UUID) else UUID(value) if isinstance(value, str) else None
        except ValueError:
            return None
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < len(str(INT4_MAX)):
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT4_MAX
    return value if is_number else None
