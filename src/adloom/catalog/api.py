"""The routes of the catalog's nouns: the usual ones, and what some have beside them."""

from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

import msgspec
from fastapi import Query, Request
from pydantic import Field

from adloom.catalog.advertiser import Advertiser, advertisers
from adloom.catalog.assignment.creative import creatives
from adloom.catalog.assignment.resource import assignments, links
from adloom.catalog.banner import banners
from adloom.catalog.campaign.model import Campaign, CampaignStatus
from adloom.catalog.campaign.resource import campaigns
from adloom.catalog.frequency_cap import frequency_caps
from adloom.catalog.placement import placements, write_tag
from adloom.catalog.publisher import publishers
from adloom.catalog.reference.resource import RECORDS
from adloom.catalog.site import sites
from adloom.catalog.targeting_rule import targeting_rules
from adloom.core.public_paths import FRAMES, SCRIPT, name_neutrally
from adloom.resource.api import (
    AdvertiserReads,
    CurrentCatalog,
    PublisherReads,
    add_change_route,
    build_router,
)
from adloom.resource.forms import build_patch
from adloom.resource.shapes import Paisa
from adloom.resource.transfer.api import build_transfer_router
from adloom.resource.transfer.exchange import Exchange
from adloom.runtime.http.api.shapes import Answer, Body, Moment
from adloom.runtime.listing import Filters, PageRequest

CATALOG: Final = Exchange(
    (
        advertisers,
        publishers,
        sites,
        *RECORDS.values(),
        placements,
        banners,
        campaigns,
        links,
        assignments,
        creatives,
        targeting_rules,
        frequency_caps,
    )
)
SCHEDULE_FIELDS: Final = (
    *("publish_at", "expires_at", "schedule_timezone"),
    *("recurrence_rule", "recurrence_window_start", "recurrence_window_end", "schedule_status"),
)
CAMPAIGN_MOVES: Final = (
    (
        "activate",
        CampaignStatus.ACTIVE,
        "Let a campaign run: at once, or from its startsAt if that is in the future.",
    ),
    ("pause", CampaignStatus.PAUSED, "Stop a campaign for a while."),
    ("end", CampaignStatus.ENDED, "End a campaign for good."),
    ("cancel", CampaignStatus.CANCELLED, "Cancel a campaign for good."),
    ("unschedule", CampaignStatus.DRAFT, "Make a scheduled campaign a draft again."),
)
# A list without pages needs a bound; a client with more asks banner by banner.
CAPS_LISTED_MAX: Final = 10_000

advertisers_router = build_router(advertisers)
publishers_router = build_router(publishers)
sites_router = build_router(sites)
placements_router = build_router(placements)
banners_router = build_router(banners)
campaigns_router = build_router(campaigns)
targeting_rules_router = build_router(targeting_rules)
# What the catalog calls a banner is an ad here.
frequency_caps_router = build_router(frequency_caps, but=("list",))
transfer_router = build_transfer_router(CATALOG)


class BudgetBody(Body):
    """What an advertiser spends a day at most; null for no limit."""

    daily_budget_paisa: Paisa | None


class ScheduleBody(Body):
    """When a campaign starts and ends; what is absent stays as the campaign has it."""

    starts_at: Moment | None = None
    ends_at: Moment | None = None


class FrequencyCapQuery(Body):
    """What the list may be narrowed to."""

    banner_id: Annotated[UUID | None, Field(alias="adId")] = None


class TagAnswer(Answer):
    """What a publisher copies into a page."""

    slug: str
    script_url: str
    html: Annotated[
        str, Field(description="Two lines: the script, once a page, and the placement where it shall be.")
    ]
    frame_html: Annotated[str, Field(description="For pages that run no script of ours.")]
    page_url: Annotated[str, Field(description="A page with this placement and nothing else, to try it.")]


def _set_budget(advertiser: Advertiser, body: BudgetBody, now: datetime) -> Advertiser:
    return msgspec.structs.replace(
        advertiser.require_present(), daily_budget_paisa=body.daily_budget_paisa, updated_at=now
    )


def _schedule_campaign(campaign: Campaign, body: ScheduleBody | None, now: datetime) -> Campaign:
    dates = body or ScheduleBody()
    return campaign.scheduled(starts_at=dates.starts_at, ends_at=dates.ends_at, now=now)


add_change_route(
    advertisers_router,
    advertisers,
    "budget",
    _set_budget,
    body=BudgetBody,
    method="PUT",
    name="set_budget",
    description="Set what an advertiser spends a day at most.",
)
add_change_route(
    banners_router,
    banners,
    "schedule",
    lambda banner, patch, now: banners.apply(patch, banner, now),
    body=build_patch(
        "BannerSchedulePatch",
        "Changes of when a banner may be shown.",
        {name: banners.form_fields[name] for name in SCHEDULE_FIELDS},
    ),
    description="Say when a banner may be shown.",
)
add_change_route(
    banners_router,
    banners,
    "activate",
    lambda banner, _, now: banner.switched(is_active=True, now=now),
    description="Switch a banner on.",
)
add_change_route(
    banners_router,
    banners,
    "deactivate",
    lambda banner, _, now: banner.switched(is_active=False, now=now),
    description="Switch a banner off: it is not served until it is switched on again.",
)
add_change_route(
    campaigns_router,
    campaigns,
    "schedule",
    _schedule_campaign,
    body=ScheduleBody,
    is_body_optional=True,
    description="Let a draft begin by itself, at its own dates or at these.",
)
for _action, _target, _description in CAMPAIGN_MOVES:
    add_change_route(
        campaigns_router,
        campaigns,
        _action,
        lambda campaign, _, now, target=_target: campaign.moved_to(target, now=now),
        description=_description,
    )


@placements_router.get("/{placement_id}/tag")
async def read_tag(
    placement_id: UUID, request: Request, scope: PublisherReads, catalog: CurrentCatalog
) -> TagAnswer:
    """Read what to put into a page, so that the placement is on it."""
    async with catalog.read() as connection:
        placement = await placements.table.find(connection, scope, placement_id)
    origin: str = request.app.state.delivery_url
    prefix: str = request.app.state.public_prefix
    script_url = f"{origin}{name_neutrally(SCRIPT, prefix)}"
    slug, page_url = placement.slug, f"{origin}{name_neutrally(f'{FRAMES}{placement.slug}.html', prefix)}"
    return TagAnswer(
        slug=slug,
        script_url=script_url,
        html=write_tag(script_url, placement),
        frame_html=f'<iframe src="{page_url}" title="Advertisement" style="border: 0; width: 100%"></iframe>',
        page_url=page_url,
    )


@frequency_caps_router.get("", response_model=list[frequency_caps.answer])
async def list_caps(
    query: Annotated[FrequencyCapQuery, Query()], scope: AdvertiserReads, catalog: CurrentCatalog
) -> list[Answer]:
    """List caps, those of one ad or of all, the oldest first; at most 10,000."""
    filters = Filters()
    filters.add_given(f"{frequency_caps.table.build_outside_sql('banner_id')} = {{}}", query.banner_id)
    page = PageRequest(size=CAPS_LISTED_MAX, sort="id")
    async with catalog.read() as connection:
        caps = await frequency_caps.table.read_page(connection, scope, filters, page)
    return [frequency_caps.answer.model_validate(cap) for cap in caps.items]
