"""Banners over HTTP."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

from fastapi import Query, status
from pydantic import AfterValidator, Field

from adloom.catalog.banner import store
from adloom.catalog.banner.model import COLOR_PATTERN, MEDIA_VARIANTS_MAX, TAGS_MAX, Banner
from adloom.catalog.source import Source
from adloom.core.ids import AdvertiserId, BannerId
from adloom.resource.access import Scope, choose_owner
from adloom.resource.api import AdvertiserReads, AdvertiserWrites, CurrentCatalog, catalog_router
from adloom.resource.changes import Catalog, find_creator
from adloom.resource.shapes import RecurrenceRule, TimeOfDay, TimeOfDayShown, TimeZone
from adloom.runtime.http.api.dependencies import Ids, Now
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import (
    INT4_MAX,
    Answer,
    Body,
    Flag,
    Moment,
    Name,
    Natural,
    Patch,
    Text,
    Text100,
    Text255,
    WebAddress,
    make_pattern_check,
)
from adloom.schedule.schedule import ScheduleStatus

Color = Annotated[str, AfterValidator(make_pattern_check(COLOR_PATTERN, "must be a colour like #ff8800"))]


class BannerScheduleFields(Body):
    """When a banner may be shown."""

    publish_at: Moment | None = None
    expires_at: Moment | None = None
    schedule_timezone: TimeZone = "UTC"
    recurrence_rule: RecurrenceRule | None = None
    recurrence_window_start: TimeOfDay | None = None
    recurrence_window_end: TimeOfDay | None = None
    schedule_status: Annotated[
        ScheduleStatus, Field(description="Where it is not given, it follows from the dates.")
    ] = ScheduleStatus.EVERGREEN

    def scheduled(self, banner: Banner, *, now: datetime) -> Banner:
        """Give the banner with the status that was given, or with the one of the dates that were given."""
        given = self.model_fields_set
        if "schedule_status" not in given and given & {"publish_at", "expires_at"}:
            banner = banner.with_status_of_dates(now)
        return banner.with_schedule_checked()


class BannerFields(BannerScheduleFields):
    """What a banner can be told."""

    title: Name
    description: Text | None = None
    source: Source = Source.INTERNAL
    is_active: Flag = True
    primary_image_url: WebAddress
    primary_image_alt: Text255 | None = None
    mobile_image_url: WebAddress | None = None
    video_url: WebAddress | None = None
    media_variants: Annotated[
        dict[Text100, WebAddress], Field(max_length=MEDIA_VARIANTS_MAX, default_factory=dict)
    ]
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
    is_evergreen_fallback: Flag = False
    fallback_placeholder_url: WebAddress | None = None


class BannerBody(BannerFields):
    """A new banner; it is the house's own where no advertiser is named."""

    advertiser_id: UUID | None = None


class BannerPatch(Patch, BannerFields):
    """Changes of a banner."""


class BannerSchedulePatch(Patch, BannerScheduleFields):
    """Changes of when a banner may be shown."""


class BannerAnswer(Answer):
    """A banner."""

    id: UUID
    advertiser_id: UUID | None
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
    recurrence_window_start: TimeOfDayShown | None
    recurrence_window_end: TimeOfDayShown | None
    schedule_status: ScheduleStatus
    is_evergreen_fallback: bool
    fallback_placeholder_url: str | None
    created_by: UUID | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class BannerQuery(ListQuery):
    """What a list of banners may be narrowed to."""

    SORTABLE: ClassVar = store.SORTABLE

    is_active: bool | None = None
    schedule_status: ScheduleStatus | None = None
    source: Source | None = None
    brand_id: Annotated[int | None, Field(ge=0, le=INT4_MAX)] = None
    category_id: Annotated[int | None, Field(ge=0, le=INT4_MAX)] = None
    tag: Text100 | None = None
    advertiser_id: UUID | None = None
    include_deleted: bool = False
    search: Text255 | None = None


router = catalog_router("/admin/banners", tag="banners")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_banner(
    body: BannerBody, scope: AdvertiserWrites, catalog: CurrentCatalog, ids: Ids, now: Now
) -> BannerAnswer:
    """Make a banner."""
    owner = choose_owner(scope, body.advertiser_id, field="advertiserId")
    async with catalog.write() as write:
        banner = Banner(
            **body.fields(but="advertiser_id"),
            id=BannerId(ids.new()),
            advertiser_id=None if owner is None else AdvertiserId(owner),
            created_by=await find_creator(write),
            created_at=now,
            updated_at=now,
            deleted_at=None,
        )
        banner = body.scheduled(banner, now=now)
        await store.insert(write, banner)
    return BannerAnswer.model_validate(banner)


@router.get("")
async def list_banners(
    query: Annotated[BannerQuery, Query()], scope: AdvertiserReads, catalog: CurrentCatalog
) -> Page[BannerAnswer]:
    """List banners."""
    filters = store.matching(
        is_active=query.is_active,
        source=query.source,
        schedule_status=query.schedule_status,
        brand_id=query.brand_id,
        category_id=query.category_id,
        tag=query.tag,
        search=query.search,
        includes_deleted=query.include_deleted,
        advertiser_id=query.advertiser_id,
    )
    async with catalog.read() as connection:
        listed = await store.banners.page(connection, scope, filters, query.page_request)
    return page_of(BannerAnswer, listed, query)


@router.get("/{banner_id}")
async def read_banner(banner_id: UUID, scope: AdvertiserReads, catalog: CurrentCatalog) -> BannerAnswer:
    """Read a banner, also one that is deleted."""
    async with catalog.read() as connection:
        return BannerAnswer.model_validate(await store.banners.find(connection, scope, banner_id))


@router.patch("/{banner_id}")
async def change_banner(
    banner_id: UUID, body: BannerPatch, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> BannerAnswer:
    """Change a banner, field by field."""
    return await _changed(
        catalog,
        scope,
        banner_id,
        lambda banner: body.scheduled(body.apply_to(banner.present(), updated_at=now), now=now),
    )


@router.patch("/{banner_id}/schedule")
async def schedule_banner(
    banner_id: UUID,
    body: BannerSchedulePatch,
    scope: AdvertiserWrites,
    catalog: CurrentCatalog,
    now: Now,
) -> BannerAnswer:
    """Say when a banner may be shown."""
    return await _changed(
        catalog,
        scope,
        banner_id,
        lambda banner: body.scheduled(body.apply_to(banner.present(), updated_at=now), now=now),
    )


@router.patch("/{banner_id}/activate")
async def activate_banner(
    banner_id: UUID, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> BannerAnswer:
    """Switch a banner on."""
    return await _changed(catalog, scope, banner_id, lambda banner: banner.switched(is_active=True, now=now))


@router.patch("/{banner_id}/deactivate")
async def deactivate_banner(
    banner_id: UUID, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> BannerAnswer:
    """Switch a banner off: it is not served until it is switched on again."""
    return await _changed(catalog, scope, banner_id, lambda banner: banner.switched(is_active=False, now=now))


@router.delete("/{banner_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_banner(banner_id: UUID, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now) -> None:
    """Delete a banner; it can be restored."""
    await _changed(catalog, scope, banner_id, lambda banner: banner.deleted(now))


@router.post("/{banner_id}/restore")
async def restore_banner(
    banner_id: UUID, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> BannerAnswer:
    """Bring a deleted banner back."""
    return await _changed(catalog, scope, banner_id, lambda banner: banner.restored(now))


async def _changed(
    catalog: Catalog, scope: Scope, banner_id: UUID, change: Callable[[Banner], Banner]
) -> BannerAnswer:
    async with catalog.write() as write:
        before = await store.banners.find_locked(write, scope, banner_id)
        banner = await store.update(write, before, change(before))
    return BannerAnswer.model_validate(banner)
