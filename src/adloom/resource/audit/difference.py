"""What a write has changed, read off the structs before and after it.

Fields have the names that clients know. Long values are cut: the audit trail says what happened, it is no backup.
"""

# pure

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec

VALUE_LENGTH_MAX: Final = 1_000
CUT: Final = "…"
# No noun has such a field; if one comes, its value stays out of the trail.
SECRET_NAME: Final = re.compile(r"password|secret|token|hash", re.IGNORECASE)
HIDDEN: Final = "(not shown)"
# The moment of a change is the entry's own; the rest never changes.
UNRECORDED: Final = frozenset({"updated_at"})

# Moves have the names of their routes.
STATUS_ACTIONS: Final = {
    "draft": "unschedule",
    "scheduled": "schedule",
    "active": "activate",
    "paused": "pause",
    "ended": "end",
    "cancelled": "cancel",
}
# What a publisher decides about a link (its state) and about a banner (whether it is refused).
DECISIONS: Final = {"accepted": "accept", "refused": "refuse", "False": "accept", "True": "refuse"}

Changes = dict[str, Any]


def list_virtual_fields(struct: type[msgspec.Struct]) -> Mapping[str, str]:
    """Return the fields that a struct reads but does not store, with their SQL; no change is about them."""
    return getattr(struct, "virtual", {})


def describe_creation(thing: msgspec.Struct) -> Changes:
    return {name: {"from": None, "to": value} for name, value in _iterate_values(thing)}


def describe_deletion(thing: msgspec.Struct) -> Changes:
    return {name: {"from": value, "to": None} for name, value in _iterate_values(thing)}


def describe_change(before: msgspec.Struct, after: msgspec.Struct) -> Changes:
    names = _map_names(type(before))
    return {
        names[name]: {
            "from": show_value(name, getattr(before, name)),
            "to": show_value(name, getattr(after, name)),
        }
        for name in find_changed_fields(before, after)
    }


def find_changed_fields(before: msgspec.Struct, after: msgspec.Struct) -> list[str]:
    """Return the fields that differ, but for the moment of the change."""
    return [name for name in _map_names(type(before)) if getattr(before, name) != getattr(after, name)]


def name_action(before: msgspec.Struct, after: msgspec.Struct) -> str:
    """Name what was done by what it changed, so that every way to do it has the same name."""
    names = find_changed_fields(before, after)
    if "deleted_at" in names:
        return "restore" if getattr(after, "deleted_at", None) is None else "delete"
    if "status" in names:
        return STATUS_ACTIONS.get(str(getattr(after, "status", "")), "update")
    if "state" in names or "is_refused" in names:
        return DECISIONS.get(str(getattr(after, "state", getattr(after, "is_refused", ""))), "update")
    if names == ["is_active"]:
        return "activate" if getattr(after, "is_active", False) else "deactivate"
    return "update"


def _iterate_values(thing: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    for name, alias in _map_names(type(thing)).items():
        value = getattr(thing, name)
        if value is not None:
            yield alias, show_value(name, value)


@cache
def _map_names(struct: type[msgspec.Struct]) -> Mapping[str, str]:
    return {
        name: _write_camel(name)
        for name in struct.__struct_fields__
        if name not in {*UNRECORDED, *list_virtual_fields(struct)}
    }


@cache
def _is_secret(name: str) -> bool:
    return SECRET_NAME.search(name) is not None


def show_value(name: str, value: Any) -> Any:  # noqa: ANN401 - any field
    """Return a value as the trail has it: hidden if it is secret, and cut if it is long."""
    if _is_secret(name):
        return HIDDEN
    # Of these three types nothing has to be made, and an import shows millions of them.
    if value is None or type(value) is bool or type(value) is int:
        return value
    plain = value if type(value) is str else msgspec.to_builtins(value)
    text = plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()
    return text[:VALUE_LENGTH_MAX] + CUT if len(text) > VALUE_LENGTH_MAX else plain


def _write_camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)
