"""HTML of the sample's pages; a slot is what any publisher would write."""

from html import escape
from typing import Final

import msgspec

from adloom.sample.content.catalog import SLOT_BY_SLUG
from adloom.sample.content.pictures import Picture

STYLE_PATH: Final = "/sample/page.css"
TAG_PATH: Final = "/tag.js"


class SamplePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page and its slots."""

    path: str
    title: str
    house: str
    body: str
    slots: tuple[str, ...] = ()

    def html(self) -> str:
        tag = f'<script async src="{TAG_PATH}"></script>' if self.slots else ""
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title>"
            f'<link rel="icon" href="{Picture("tea", "rust", 64, 64).path}" type="image/svg+xml">'
            f'<link rel="stylesheet" href="{STYLE_PATH}">{tag}</head>'
            f'<body class="{self.house}">{self.body}</body></html>\n'
        )


def slot(slug: str) -> str:
    """Return a slot; its class reserves the space of its layout, so that nothing moves when the ad arrives."""
    layout = SLOT_BY_SLUG[slug].layout.replace("_", "-")
    return f'<div class="slot {layout}" data-adloom="{slug}"></div>'


def image(picture: Picture, alt: str = "", *, is_first: bool = False) -> str:
    """Return an image with its size, so that nothing moves when it arrives."""
    hint = 'fetchpriority="high"' if is_first else 'loading="lazy"'
    return (
        f'<img src="{picture.path}" width="{picture.width}" height="{picture.height}" '
        f'alt="{escape(alt)}" {hint} decoding="async">'
    )
