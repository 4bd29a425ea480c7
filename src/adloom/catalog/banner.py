"""Banners: the creatives, and when each may be shown."""

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

import msgspec
from pydantic import AfterValidator, Field

from adloom.catalog.advertiser import ACCOUNT_PRIORITY, advertisers
from adloom.catalog.banner_content import CONTENT
from adloom.catalog.campaign.model import Source
from adloom.catalog.reference.resource import RECORDS, ReferenceKind, is_there
from adloom.core.errors import (
    BadRequestError,
    FieldProblem,
    NotFoundError,
    ValidationFailedError,
    make_field_error,
)
from adloom.core.ids import AdvertiserId, BannerId, UserId
from adloom.resource.access import ADVERTISER, Scope
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.resource import Filter, Resource
from adloom.resource.shapes import RecurrenceRule, TimeOfDay, TimeZone
from adloom.resource.soft_delete import SoftDeletable
from adloom.runtime.http.api.shapes import (
    Flag,
    Moment,
    Name,
    Natural,
    Positive,
    Text,
    Text100,
    Text255,
    WebAddress,
    make_pattern_check,
)
from adloom.schedule.schedule import ScheduleStatus, check_window, derive_status

COLOR_PATTERN: Final = r"^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"
TAGS_MAX: Final = 50
SCHEDULE_INVALID: Final = "BANNER_SCHEDULE_INVALID"
MEDIA_VARIANTS_MAX: Final = 50

Color = Annotated[
    str, AfterValidator(make_pattern_check(COLOR_PATTERN, "must be a colour like #ff8800 or #f80"))
]


class Banner(SoftDeletable, frozen=True, kw_only=True):
    """One creative."""

    noun_name = "banner"
    # 400 by the contract that clients are written against; for every other noun it is 409.
    not_deleted_error = BadRequestError

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
    width: Annotated[
        Positive | None,
        Field(description="Of the picture: in contextual slots it fits where the size is the same."),
    ] = None
    height: Positive | None = None
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
            problem = FieldProblem("expiresAt", "must be after publishAt")
            raise BadRequestError(
                "expiresAt must be after publishAt.", errors=[problem], code=SCHEDULE_INVALID
            )
        message = check_window(self.recurrence_window_start, self.recurrence_window_end)
        if message is not None:
            field = "recurrenceWindowStart" if self.recurrence_window_start is None else "recurrenceWindowEnd"
            raise make_field_error(field, message, message)
        return self

    def with_status_of_dates(self, now: datetime) -> "Banner":
        """Return the banner in the status that follows from its dates."""
        status = derive_status(publish_at=self.publish_at, expires_at=self.expires_at, now=now)
        return msgspec.structs.replace(self, schedule_status=status)

    def scheduled(self, given: Collection[str], now: datetime) -> "Banner":
        """Return the banner with the status that a client gave, or with that of the dates it gave."""
        is_by_dates = "schedule_status" not in given and {"publish_at", "expires_at"} & {*given}
        banner = (self.with_status_of_dates(now) if is_by_dates else self).with_schedule_checked()
        if banner.schedule_status is ScheduleStatus.SCHEDULED and banner.publish_at is None:
            raise BadRequestError(
                "A scheduled banner needs a publishAt: give one, or leave scheduleStatus out.",
                errors=[FieldProblem("publishAt", "is required of a scheduled banner")],
                code=SCHEDULE_INVALID,
            )
        return banner

    def switched(self, *, is_active: bool, now: datetime) -> "Banner":
        return msgspec.structs.replace(self.require_present(), is_active=is_active, updated_at=now)


async def _check_records(write: CatalogWrite, _scope: Scope, before: Banner | None, after: Banner) -> None:
    """Check that what a banner begins to name is there; it stays until the write ends."""
    missing: list[ReferenceKind] = []
    for kind in ReferenceKind:
        field = f"{kind}_id"
        key = getattr(after, field)
        is_new = before is None or getattr(before, field) != key
        if key is not None and is_new and not await is_there(write, kind, key):
            missing.append(kind)
    problems = [
        FieldProblem(f"{kind}Id", f"names no {kind}") for kind in missing if kind is not ReferenceKind.SEO
    ]
    if problems:
        raise ValidationFailedError("The banner names what is not there.", errors=problems)
    if missing:
        raise NotFoundError("There is no SEO record with this id.", code="BANNER_SEO_NOT_FOUND")


# What a publisher looks at before it approves a banner for its site.
SHOWN_FIELDS: Final = (*CONTENT, "fallback_placeholder_url", "width", "height")
ASK_AGAIN: Final = """
    UPDATE site_approvals AS it SET state = 'pending', reason = NULL, decided_at = NULL, decided_by = NULL
      FROM banners AS banner
     WHERE banner.id = it.banner_id AND banner.public_id = $1 AND it.state = 'approved'
    RETURNING it.site_id
"""


async def _ask_for_approval_again(write: CatalogWrite, before: Banner, after: Banner) -> None:
    """Let publishers decide again about a banner that looks otherwise, or leads elsewhere."""
    if all(getattr(before, field) == getattr(after, field) for field in SHOWN_FIELDS):
        return
    for row in await write.connection.fetch(ASK_AGAIN, after.id):
        write.touch(IndexedNoun.SITE, row[0])


banners = Resource(
    struct=Banner,
    name="banner",
    path="/admin/banners",
    tag="banners",
    table_name="banners",
    title="title",
    owner=ADVERTISER,
    references={"advertiser_id": advertisers, **{f"{kind}_id": records for kind, records in RECORDS.items()}},
    touches=(IndexedNoun.BANNER, "id"),
    docs={"body": "A new banner. Without an advertiser it belongs to the house."},
    filters=(
        "is_active",
        "schedule_status",
        "source",
        "brand_id",
        "category_id",
        Filter(name="tag", annotation=Text100, condition="it.tags @> ARRAY[{}::text]"),
        "advertiser_id",
    ),
    search=("title", "headline", "description"),
    sort=("title", "priority", "source", "is_active", "schedule_status", "publish_at", "expires_at"),
    check=_check_records,
    account_bounds={"priority": ACCOUNT_PRIORITY},
    finish=lambda banner, given, now: banner.scheduled(given, now),
    after_update=_ask_for_approval_again,
    list_name="banners",
)
