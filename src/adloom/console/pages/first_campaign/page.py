"""The guide to the first campaign: four steps, then a live check of the result. Its address keeps the choices."""

import base64
import binascii
from typing import Any, Final
from urllib.parse import urlencode, urlsplit
from uuid import UUID

import msgspec
from markupsafe import Markup
from nicegui import ui

from adloom.console.client import ApiClient, Json, ProblemError
from adloom.console.components.format import format_count, format_moment
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_heading,
    add_html,
    add_link_button,
    add_snippet,
    set_attributes,
)
from adloom.console.page import PageVisit, register_page
from adloom.console.pages.first_campaign.steps import (
    SAMPLE_PATH,
    STEPS,
    CampaignPlan,
    choose_place,
    go_step,
    is_of_sample,
    show_how_step,
    show_what_step,
    show_where_step,
)
from adloom.console.shell import ADMINS

ADDRESS: Final = "/console/first-campaign"
REFRESH_SECONDS: Final = 1.0
STEP_LABELS: Final = ("Where", "What", "How", "Go")
STEP_BUILDERS: Final = (show_where_step, show_what_step, show_how_step, go_step)


async def finish(visit: PageVisit, plan: CampaignPlan) -> None:
    placement, campaign = plan.made["placement"], plan.made["campaign"]
    tag = await visit.api.get(f"/admin/placements/{placement['id']}/tag")
    with add_div("grid-of two"):
        with add_card("Your ad is on its way"), add_div("stack"):
            _show_tag_ways(placement, tag)
            with add_div("row-of"):
                add_link_button("To the campaign", f"/console/campaigns/{campaign['id']}")
                add_link_button("Make another one", ADDRESS, look="flat")
        with add_card("Live check"):
            checks = add_html("", tag="ul").classes("al-progress").props('aria-live="polite"')

    async def poll() -> None:
        content = await _build_checks(visit, placement, campaign)
        if content != checks.content:
            checks.content = content

    await poll()
    ui.timer(REFRESH_SECONDS, poll)


def _show_tag_ways(placement: Json, tag: Json) -> None:
    if is_of_sample(placement):
        parts = urlsplit(str(tag["scriptUrl"]))
        ui.label("Open the page, and look for it.")
        _add_link("Open the page", f"{parts.scheme}://{parts.netloc}{SAMPLE_PATH}")
    else:
        ui.label("Put these two lines into your page where the ad should be:")
        add_snippet(tag["html"])
        _add_link("See it alone", tag["pageUrl"])


def _add_link(label: str, address: str) -> None:
    with add_div("row-of"):
        link = ui.button(label, icon="open_in_new").props('target="_blank" rel="noopener" unelevated')
        set_attributes(link, href=address)


async def _build_checks(visit: PageVisit, placement: Json, campaign: Json) -> Markup:
    today = visit.now.date()
    stats = await visit.api.get(
        "/admin/stats/banners", **{"from": today, "to": today, "campaignId": campaign["id"], "groupBy": "day"}
    )
    totals = stats["totals"]
    explained = await visit.api.get(f"/banners/explain/{placement['slug']}")
    own = [one for one in explained["candidates"] if one["campaignId"] == campaign["id"]]
    is_chosen = any(one["outcome"] == "won" for one in own)
    reason = own[0]["reason"] if own else "Delivery is learning about it …"
    seen, clicked = totals["impressions"], totals["clicks"]
    return Markup("").join(
        [
            _check("Readers get it", reason, is_done=is_chosen or seen > 0),
            _check(
                "It was seen",
                f"Impressions: {format_count(seen)}"
                if seen
                else "Not seen yet. An impression counts when half of the ad is visible for a second.",
                is_done=seen > 0,
            ),
            _check(
                "It was clicked",
                f"Clicks: {format_count(clicked)}" if clicked else "Not clicked yet.",
                is_done=clicked > 0,
            ),
        ]
    )


def _check(label: str, note: str, *, is_done: bool) -> Markup:
    return Markup('<li class="{}"><b>{}</b><span class="quiet small">{}</span></li>').format(
        "" if is_done else "waiting", label, note
    )


@register_page(ADDRESS, title="My first campaign", roles=ADMINS)
async def show_first_campaign(visit: PageVisit) -> None:
    plan, number = await read_plan(visit.api, visit.query.get("plan", ""))

    @ui.refreshable
    async def show_body() -> None:
        _show_trail(number)
        if number < len(STEP_BUILDERS):
            await STEP_BUILDERS[number](visit, plan, turn)
        else:
            await finish(visit, plan)

    async def turn(by: int) -> None:
        nonlocal number
        number += by
        ui.run_javascript(f"adloom.address({msgspec.json.encode(write_query(plan, number)).decode()})")
        if by:
            await show_body.refresh()

    add_heading(
        "My first campaign",
        note="Four small steps, and your ad is on a page. Everything can be changed later.",
    )
    await show_body()


def _show_trail(current: int) -> None:
    steps = Markup("").join(
        Markup('<li class="{}"{}><b>{}</b>{}</li>').format(
            "done" if number < current else "",
            Markup(' aria-current="step"') if number == current else "",
            "✓" if number < current else number + 1,
            label,
        )
        for number, label in enumerate(STEP_LABELS)
    )
    label = f"Step {min(current + 1, len(STEP_LABELS))} of {len(STEP_LABELS)}"
    set_attributes(add_html(steps, tag="ol").classes("al-steps"), aria_label=label)


LENGTH_MAX: Final = 12_000  # Servers refuse longer addresses: then a reload begins anew.
YEAR_MAX: Final = 9999
LAST: Final = 4  # The step after all others: everything is made.
WITH_ID: Final = ("placement", "banner", "campaign")


class KeptWhere(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Where the ad should be, as the form has it."""

    choice: str
    label: str | None = None
    layout_type: str | None = None
    placement_id: UUID | None = None


class KeptBanner(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What readers see, with what a file says of itself."""

    headline: str
    title: str
    primary_image_url: str
    cta_url: str | None = None
    cta_label: str | None = None
    subheadline: str | None = None
    mobile_image_url: str | None = None
    media_variants: dict[str, str] | None = None
    width: int | None = None
    height: int | None = None


class KeptCampaign(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """How it should run."""

    name: str
    ends_at: str | None = None
    bid_amount: float | None = None
    budget_daily_paisa: int | None = None


class KeptPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A plan as it is in the address: the choices, and what was made of them, by id."""

    step: int
    where: KeptWhere | None = None
    banner: KeptBanner | None = None
    campaign: KeptCampaign | None = None
    made: dict[str, UUID | None] = {}


def write_query(plan: CampaignPlan, step: int) -> str:
    """Return the query of the address that keeps a plan; empty for one that is too long."""
    kept: dict[str, Any] = {
        "step": step,
        "made": {name: one["id"] if name in WITH_ID else None for name, one in plan.made.items()},
    }
    kept |= {name: chosen for name in ("where", "banner", "campaign") if (chosen := getattr(plan, name))}
    text = base64.urlsafe_b64encode(msgspec.json.encode(kept)).decode().rstrip("=")
    return urlencode({"plan": text}) if len(text) <= LENGTH_MAX else ""


async def read_plan(api: ApiClient, text: str) -> tuple[CampaignPlan, int]:
    """Return the plan and the step of an address; what is not a plan, or not true any more, begins anew."""
    kept = _decode(text)
    plan = CampaignPlan()
    if kept is None or kept.where is None:
        return plan, 0
    plan.where = msgspec.to_builtins(kept.where)
    try:
        await choose_place(api, plan)
        plan.made = await _read_made(api, kept.made)
    except ProblemError:
        return CampaignPlan(), 0
    chosen = (kept.where, kept.banner, kept.campaign)
    plan.banner = msgspec.to_builtins(kept.banner) if kept.banner else {}
    plan.campaign = msgspec.to_builtins(kept.campaign) if kept.campaign else {}
    reached = next((number for number, one in enumerate(chosen) if one is None), len(chosen))
    if all(step in plan.made for step in STEPS):
        reached = LAST
    return plan, max(0, min(kept.step, reached))


def _decode(text: str) -> KeptPlan | None:
    if not text or len(text) > LENGTH_MAX:
        return None
    try:
        kept = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=KeptPlan)
        ends_at = format_moment(kept.campaign.ends_at if kept.campaign else None)
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return None
    # The last years of the calendar end earlier elsewhere.
    return kept if ends_at is None or 1 < ends_at.year < YEAR_MAX else None


async def _read_made(api: ApiClient, ids: dict[str, UUID | None]) -> dict[str, Any]:
    """Read what was made, up to the first step that was not."""
    made: dict[str, Any] = {}
    for step in STEPS:
        if step not in ids:
            break
        made[step] = await api.get(f"/admin/{step}s/{ids[step]}") if step in WITH_ID else {}
    return made
