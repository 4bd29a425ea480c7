"""A banner, and what can be wrong with one."""

from datetime import datetime, time
from typing import Final
from uuid import UUID

import msgspec

from adloom.catalog.source import Source
from adloom.core.errors import BadRequestError, FieldProblem, ValidationFailedError
from adloom.core.ids import AdvertiserId, BannerId, UserId
from adloom.resource.soft_delete import SoftDeletable
from adloom.schedule.schedule import ScheduleStatus, check_window, derive_status

COLOR_PATTERN: Final = r"^#[0-9a-fA-F]{6}$"
TAGS_MAX: Final = 50
MEDIA_VARIANTS_MAX: Final = 50


class BannerAlreadyDeletedError(BadRequestError):
    """The banner is deleted, so it cannot be changed or deleted again."""

    code = "BANNER_ALREADY_DELETED"


class BannerNotDeletedError(BadRequestError):
    """Only what is deleted can be restored."""

    code = "BANNER_NOT_DELETED"


class BannerScheduleError(BadRequestError):
    """The dates are in the wrong order."""

    code = "BANNER_SCHEDULE_INVALID"


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
    brand_id: int | None
    category_id: int | None
    product_id: int | None
    seo_id: UUID | None
    tags: tuple[str, ...]
    bg_color: str | None
    priority: int
    publish_at: datetime | None
    expires_at: datetime | None
    schedule_timezone: str
    recurrence_rule: str | None
    recurrence_window_start: time | None
    recurrence_window_end: time | None
    schedule_status: ScheduleStatus
    is_evergreen_fallback: bool
    fallback_placeholder_url: str | None
    created_by: UserId | None
    created_at: datetime

    def with_schedule_checked(self) -> "Banner":
        """Give the banner itself, if its dates and its daily window make sense together."""
        if self.publish_at is not None and self.expires_at is not None and self.publish_at >= self.expires_at:
            raise BannerScheduleError("expiresAt must be after publishAt.")
        message = check_window(self.recurrence_window_start, self.recurrence_window_end)
        if message is not None:
            field = "recurrenceWindowStart" if self.recurrence_window_start is None else "recurrenceWindowEnd"
            raise ValidationFailedError(message, errors=[FieldProblem(field, message)])
        return self

    def with_status_of_dates(self, now: datetime) -> "Banner":
        """Give the banner in the status that follows from its dates."""
        status = derive_status(publish_at=self.publish_at, expires_at=self.expires_at, now=now)
        return msgspec.structs.replace(self, schedule_status=status)

    def switched(self, *, is_active: bool, now: datetime) -> "Banner":
        """Give the banner switched on or off."""
        return msgspec.structs.replace(self.present(), is_active=is_active, updated_at=now)
