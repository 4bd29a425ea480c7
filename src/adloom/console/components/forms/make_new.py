"""A way from a dialog that adds something to the form that makes it, and back with it chosen."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from adloom.console.client import parse_id
from adloom.console.components.layout import link_button

THEN: Final = "then"
NEW: Final = "new"
HOME: Final = "/console/"


def add_new_button(noun: str, *, back: str, **given: str | None) -> None:
    """Add a button to the form of a new item; when it is made, `back` is opened with its id as `new`."""
    link_button(f"New {noun}", address_of_form(noun, back=back, **given), icon="add", look="flat")


def address_of_form(noun: str, *, back: str, **given: str | None) -> str:
    query = {name: value for name, value in given.items() if value}
    return f"/console/{noun}s/new?{urlencode({**query, THEN: back})}"


def find_way_back(query: Mapping[str, str], item_id: str | None = None) -> str | None:
    """Return the page of the console that the address says to open next, with the id of what was made."""
    asked = query.get(THEN, "")
    try:
        parts = urlsplit(asked)
    except ValueError:
        return None
    # Browsers read a backslash as a slash, and leave out white space: such an address could lead elsewhere.
    is_ours = asked.startswith(HOME) and asked.isprintable() and "\\" not in asked
    if not is_ours or parts.netloc or parts.scheme:
        return None
    chosen = [(NEW, item_id)] if item_id else []
    return f"{parts.path}?{urlencode([*parse_qsl(parts.query), *chosen])}"


def find_made(query: Mapping[str, str]) -> str | None:
    """Return the id of what somebody has made and comes back with."""
    return parse_id(query.get(NEW, ""))
