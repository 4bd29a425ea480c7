"""A banner, and what can be wrong with one."""

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

import msgspec
from pydantic import AfterValidator, Field

from adloom.catalog.source import Source
from adloom.core.errors import BadRequestError, FieldProblem, ValidationFailedError
from adloom.core.ids import AdvertiserId, BannerId, UserId
from adloom.resource.shapes import RecurrenceRule, TimeOfDay, TimeZone
from adloom.resource.soft_delete import SoftDeletable
from adloom.runtime.http.api.shapes import (
    Flag,
    Moment,
    Name,
    Natural,
    Text,
    Text100,
    Text255,
    WebAddress,
    make_pattern_check,
)
from adloom.schedule.schedule import ScheduleStatus, check_window, derive_status

COLOR_PATTERN: Final = r"^#[0-9a-fA-F]{6}$"
TAGS_MAX: Final = 50
MEDIA_VARIANTS_MAX: Final = 50

Color = Annotated[str, AfterValidator(make_pattern_check(COLOR_PATTERN, "must be a colour like #ff8800"))]


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
    title: Name
    description: Text | None = None
    source: Source = Source.INTERNAL
    is_active: Flag = True
    primary_image_url: WebAddress
    primary_image_alt: Text255 | None = None
    mobile_image_url: WebAddress | None = None
    video_url: WebAddress | None = None
    media_variants: Annotated[dict[Text100, WebAddress], Field(max_length=MEDIA_VARIANTS_MAX)] = (
        msgspec.field(default_factory=dict[str, str])
    )
    headline: Text255 | None = None
    subheadline: Text255 | None = None
    cta_label: Text100 | None = None
    cta_url: WebAddress | None = None
    cta_open_new_tab: Flag = False
    utm_source: Text100 | None = None
    utm_medium: Text100 | None = None
    utm_campaign: Text100 | None = None
    utm_content: Text100 | None = None
    brand_id: Natural | None = None
    category_id: Natural | None = None
    product_id: Natural | None = None
    seo_id: UUID | None = None
    tags: Annotated[tuple[Text100, ...], Field(max_length=TAGS_MAX)] = ()
    bg_color: Color | None = None
    priority: Natural = 0
    publish_at: Moment | None = None
    expires_at: Moment | None = None
    schedule_timezone: TimeZone = "UTC"
    recurrence_rule: RecurrenceRule | None = None
    recurrence_window_start: TimeOfDay | None = None
    recurrence_window_end: TimeOfDay | None = None
    schedule_status: Annotated[
        ScheduleStatus, Field(description="Where it is not given, it follows from the dates.")
    ] = ScheduleStatus.EVERGREEN
    is_evergreen_fallback: Flag = False
    fallback_placeholder_url: WebAddress | None = None
    created_by: UserId | None = None
    created_at: datetime

    def with_schedule_checked(self) -> "Banner":
        """Return the banner, or raise where its dates or its daily window contradict each other."""
        if self.publish_at is not None and self.expires_at is not None and self.publish_at >= self.expires_at:
            raise BannerScheduleError("expiresAt must be after publishAt.")
        message = check_window(self.recurrence_window_start, self.recurrence_window_end)
        if message is not None:
            field = "recurrenceWindowStart" if self.recurrence_window_start is None else "recurrenceWindowEnd"
            raise ValidationFailedError(message, errors=[FieldProblem(field, message)])
        return self

    def with_status_of_dates(self, now: datetime) -> "Banner":
        """Return the banner in the status that follows from its dates."""
        status = derive_status(publish_at=self.publish_at, expires_at=self.expires_at, now=now)
        return msgspec.structs.replace(self, schedule_status=status)

    def scheduled(self, given: Collection[str], now: datetime) -> "Banner":
        """Return the banner with the status that a client gave, or with that of the dates it gave."""
        is_by_dates = "schedule_status" not in given and {"publish_at", "expires_at"} & {*given}
        return (self.with_status_of_dates(now) if is_by_dates else self).with_schedule_checked()

    def switched(self, *, is_active: bool, now: datetime) -> "Banner":
        return msgspec.structs.replace(self.present(), is_active=is_active, updated_at=now)
