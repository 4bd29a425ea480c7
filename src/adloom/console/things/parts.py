"""Which part of a page about one thing is asked for."""

from collections.abc import Mapping

from adloom.console.components.layout import tab_links
from adloom.console.page import Visit


def part_asked(visit: Visit, labels: Mapping[str, str]) -> str:
    """Show the parts, and tell which is asked for: the first, where none is."""
    first = next(iter(labels))
    asked = visit.query.get("tab", first)
    current = asked if asked in labels else first
    tab_links(visit.path, current, labels, label="Parts of this page")
    return current
