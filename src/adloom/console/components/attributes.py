"""Attributes of an element that are anybody's words.

A string of `props` is parsed: a quote in a value would end it, and what stands behind it could be a script.
So only our own constants are written there; `attributed` takes everything else as it is.
"""

from typing import TypeVar

from nicegui import ui

Element = TypeVar("Element", bound=ui.element)


def set_attributes(element: Element, **values: str) -> Element:
    """Set attributes to any text; `aria_label` sets aria-label."""
    for name, value in values.items():
        element.props[name.replace("_", "-")] = value
    return element
