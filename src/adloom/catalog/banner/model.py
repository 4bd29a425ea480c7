"""A banner, and what can be wrong with one."""

from datetime import datetime
from typing import Final

import msgspec

from adloom.catalog.soft_delete import SoftDeletable
from adloom.catalog.source import Source
from adloom.core.errors import BadRequestError, NotFoundError
from adloom.core.ids import AdvertiserId, BannerId

COLOR_PATTERN: Final = r"^#[0-9a-fA-F]{6}$"
TAGS_MAX: Final = 50
MEDIA_VARIANTS_MAX: Final = 50


class BannerNotFoundError(NotFoundError):
    """No such banner, or it is somebody else's."""

    code = "BANNER_NOT_FOUND"


class BannerAlreadyDeletedError(BadRequestError):
    """The banner is deleted, so it cannot be changed or deleted again."""

    code = "BANNER_ALREADY_DELETED"


class BannerNotDeletedError(BadRequestError):
    """Only what is deleted can be restored."""

    code = "BANNER_NOT_DELETED"


class Banner(SoftDeletable, frozen=True, kw_only=True):
    """One creative."""

    noun_name = "banner"
    already_deleted = BannerAlreadyDeletedError
    not_deleted = BannerNotDeletedError

    id: BannerId
    advertiser_id: AdvertiserId | None
    title: str
    description: str | None
    source: Source
    is_active: bool
    primary_image_url: str
    primary_image_alt: str | None
    mobile_image_url: str | None
    video_url: str | None
    media_variants: dict[str, str]
    headline: str | None
    subheadline: str | None
    cta_label: str | None
    cta_url: str | None
    cta_open_new_tab: bool
    utm_source: str | None
    utm_medium: str | None
    utm_campaign: str | None
    utm_content: str | None
    tags: tuple[str, ...]
    bg_color: str | None
    priority: int
    created_at: datetime

    def switched(self, *, is_active: bool, now: datetime) -> "Banner":
        """Give the banner switched on or off."""
        return msgspec.structs.replace(self.present(), is_active=is_active, updated_at=now)
