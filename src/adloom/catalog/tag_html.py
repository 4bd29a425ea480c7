"""The two lines of HTML that put a placement on a page, with the space of its ad reserved."""

import re
from typing import Final

from adloom.catalog.placement import Layout, Placement

OVER_THE_PAGE: Final = frozenset({Layout.POPUP, Layout.INTERSTITIAL, Layout.STICKY_BAR})
_RATIO: Final = re.compile(r"\s*(\d{1,5}(?:\.\d{1,3})?)\s*[:/x]\s*(\d{1,5}(?:\.\d{1,3})?)\s*")


def write_tag(script_url: str, placement: Placement) -> str:
    # A slug has small letters, digits and hyphens only: it needs no escaping.
    style = find_space(placement)
    space = f' style="{style}"' if style else ""
    return f'<script async src="{script_url}"></script>\n<div data-adloom="{placement.slug}"{space}></div>'


def find_space(placement: Placement) -> str | None:
    """Return the style that reserves what the placement recommends; None if it takes no space, or says nothing."""
    if placement.layout_type in OVER_THE_PAGE:
        return None
    width, height = placement.recommended_width, placement.recommended_height
    if width is not None and height is not None:
        return f"aspect-ratio: {width} / {height}; max-width: {width}px"
    ratio = _RATIO.fullmatch(placement.recommended_aspect_ratio or "")
    if ratio is not None and float(ratio[1]) and float(ratio[2]):
        return f"aspect-ratio: {ratio[1]} / {ratio[2]}"
    return None if height is None else f"height: {height}px"
