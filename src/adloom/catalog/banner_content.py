"""What visitors see of a banner: its fields and its columns, once for all code that reads them."""

from collections.abc import Iterable
from typing import Final

import msgspec


class BannerContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a banner shows and where it leads, with the texts of its assignment where these replace its own."""

    title: str
    headline: str | None
    subheadline: str | None
    description: str | None
    primary_image_url: str
    primary_image_alt: str | None
    mobile_image_url: str | None
    video_url: str | None
    media_variants: dict[str, str]
    cta_label: str | None
    cta_url: str | None
    bg_color: str | None


UTM: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_content")
CONTENT: Final = BannerContent.__struct_fields__
DELIVERED: Final = (*CONTENT, "cta_open_new_tab", *UTM, "fallback_placeholder_url")
REPLACED: Final = frozenset(["headline", "subheadline", "cta_label", "cta_url"])


def write_columns(names: Iterable[str], assignment: str | None = None) -> str:
    """Write columns of the table `banner`; those of an assignment come first where it has them."""
    return ", ".join(
        f"coalesce({assignment}.override_{name}, banner.{name}) AS {name}"
        if assignment is not None and name in REPLACED
        else f"banner.{name}"
        for name in names
    )
