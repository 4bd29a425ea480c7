"""The form of an answer, for previews and the API's description; `encode` writes real answers as bytes."""

from typing import Annotated, TypeAlias
from uuid import UUID

import msgspec

Uri: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "uri"})]


class AnsweredPlacement(msgspec.Struct, rename="camel"):
    """The placement that was asked for."""

    id: UUID
    slug: str
    label: str
    layout_type: str
    max_banners: int
    fallback_placeholder_url: Uri | None


class ShownBanner(msgspec.Struct, kw_only=True, rename="camel"):
    """What a page needs to show a banner."""

    id: UUID
    title: str
    headline: str | None
    subheadline: str | None
    description: str | None
    primary_image_url: Uri
    primary_image_alt: str | None
    mobile_image_url: Uri | None
    video_url: Uri | None
    media_variants: dict[str, str]
    cta_label: str | None
    cta_url: Uri | None
    cta_open_new_tab: bool
    bg_color: str | None
    fallback_placeholder_url: Uri | None
    transition_duration_ms: int | None
