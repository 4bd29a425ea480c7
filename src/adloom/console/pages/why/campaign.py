"""Why a campaign does not deliver: every step between it and a reader, and its auctions of the last hour."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json, ProblemError
from adloom.console.components import format as fmt
from adloom.console.components.charts.bars import FunnelStep, build_funnel
from adloom.console.components.forms.fields import add_picker
from adloom.console.components.layout import (
    NoticeKind,
    Tile,
    add_card,
    add_div,
    add_empty_state,
    add_html,
    add_link_button,
    add_notice,
    build_badge,
    build_meter,
    set_attributes,
)
from adloom.console.page import PageVisit
from adloom.console.pages.campaigns.targeting import fetch_rules
from adloom.console.pages.why.candidates import AUCTION, STEPS, count_by_step
from adloom.console.words.field_labels import name_fields

LISTED_MAX: Final = 100
# By state: what it says, its icon, and its colour.
STATES: Final = {
    "ok": ("passes", "check_circle_outline", "good"),
    "limits": ("holds back", "warning_amber", "warn"),
    "stops": ("stops", "block", "bad"),
}
# The label of a check, and the tab of the campaign's page that can change it; the first has the status buttons.
CHECKS: Final = {
    "status": ("Status", ""),
    "dates": ("Dates", "settings"),
    "placements": ("Placements", "banners"),
    "schedule": ("Schedule", "schedule"),
    "targeting": ("Targeting", "targeting"),
    "caps": ("Caps", "settings"),
    "budget": ("Budget", "settings"),
    "pacing": ("Pacing", "settings"),
    "requests": ("Readers", ""),
    "frequency": ("Frequency", ""),
    "floor": ("Floors", "settings"),
    "auctions": ("Auctions", "settings"),
    "rivals": ("Other banners", "banners"),
    "contextual_bid": ("Bid for contextual slots", "settings"),
    "creatives": ("Banners for contextual slots", "contextual"),
    "categories": ("Categories", "settings"),
    "sites": ("Sites", "contextual"),
    "sizes": ("Sizes", "contextual"),
    "contextual_floor": ("Floors of pages", "settings"),
    "approvals": ("Approvals", "contextual"),
}


async def show_campaign(visit: PageVisit) -> None:
    campaign_id = visit.query.get("campaign", "")
    await _show_chooser(visit.api, campaign_id)
    if not campaign_id:
        add_empty_state(
            "campaign",
            "Which campaign does not deliver?",
            "Every step between it and a reader is looked at, with what happened in the last hour.",
        )
        return
    try:
        found = await visit.api.get(f"/admin/campaigns/{campaign_id}/delivery")
    except ProblemError as error:
        add_notice(error.message, kind="bad", title=strings.COULD_NOT_LOAD)
        return
    states = {check["state"] for check in found["checks"]}
    kind: NoticeKind = "bad" if "stops" in states else "good" if found["impressions"] else "warn"
    title = "How does “{name}” deliver?" if kind == "good" else "Why does “{name}” not deliver?"
    add_notice(name_fields(found["verdict"]), kind=kind, title=title.format(name=found["name"]))
    rules = await fetch_rules(visit, campaign_id)
    if any(rule["ruleType"] == "country" and rule["operator"] == "in" and rule["isActive"] for rule in rules):
        await warn_of_unknown_countries(visit)
    _show_figures(found)
    with add_card("Step by step", note=f"Since {fmt.format_full_moment(found['since'])}", classes="flush"):
        _show_checks(found)
    if found["auctions"]["held"]:
        _show_auctions(found["auctions"])
    await _show_placements(visit.api, campaign_id)


async def warn_of_unknown_countries(visit: PageVisit) -> None:
    """Say so if rules about countries keep everybody away, because nothing tells a reader's country."""
    if not (await visit.api.get("/admin/attention"))["knowsCountries"]:
        add_notice(strings.NO_COUNTRIES, kind="warn")


async def _show_chooser(api: ApiClient, campaign_id: str) -> None:
    field = await add_picker("Campaign", campaign_id, api=api, path="/admin/campaigns", sort="name")
    field.props('outlined dense options-dense data-field="campaign"').style("max-width: 26rem")
    field.on_value_change(lambda event: ui.navigate.to(f"/console/why?campaign={event.value}"))


def _show_figures(found: Json) -> None:
    auctions = found["auctions"]
    with add_div("grid-of tiles"):
        Tile("Impressions").update(fmt.format_count(found["impressions"]))
        Tile("Clicks").update(fmt.format_count(found["clicks"]))
        if auctions["held"]:
            share = fmt.format_percent(auctions["won"] / auctions["held"], places=0)
            Tile("Auctions it could win").update(fmt.format_count(auctions["held"]))
            Tile("Auctions won").update(fmt.format_count(auctions["won"]), note=f"{share} of all")


def _show_checks(found: Json) -> None:
    with ui.element("ul").classes("al-checks"):
        for check in found["checks"]:
            label, icon, colour = STATES[check["state"]]
            with set_attributes(ui.element("li"), data_check=check["name"], data_state=check["state"]):
                set_attributes(ui.icon(icon).classes(colour), aria_label=label)
                add_html(Markup('<span class="strong">{}</span>').format(CHECKS[check["name"]][0]))
                add_html(_build_sentence(check, found["campaignId"])).classes("say")
                add_html(_build_share(check)).classes("share")


def _build_sentence(check: Json, campaign_id: str) -> Markup:
    if not check["change"]:
        return Markup("{}").format(name_fields(check["sentence"]))
    tab = CHECKS[check["name"]][1]
    link = Markup('<a href="/console/campaigns/{}{}">{}</a>').format(
        campaign_id, f"?tab={tab}" if tab else "", "Open the campaign"
    )
    return Markup('{}<div class="quiet small">{} {}</div>').format(
        name_fields(check["sentence"]), name_fields(check["change"]), link
    )


def _build_share(check: Json) -> Markup:
    passed, of = check["passed"], check["of"]
    label, _, kind = STATES[check["state"]]
    if passed is None or not of:
        return build_badge(label, kind) if check["state"] != "ok" else Markup("")
    return Markup('<div class="small num">{}</div>{}').format(
        f"{passed:,} of {of:,}", build_meter(passed / of, kind)
    )


def _show_auctions(auctions: Json) -> None:
    left = auctions["held"] - auctions["absent"]
    absent = "Not a candidate: not running then, or without a bid."
    found = [
        FunnelStep(label="Held", left=auctions["held"]),
        FunnelStep(label="It was a candidate", left=left, note=absent),
    ]
    taken = count_by_step(auctions["removed"])
    for name in AUCTION:
        if taken[name]:
            left -= taken[name]
            found.append(FunnelStep(label=STEPS[name].label, left=left, note=STEPS[name].note))
    note = STEPS["won"].note
    if auctions["ecpm"] is not None and auctions["winningEcpm"] is not None:
        note = f"Where it lost, its eCPM was {fmt.format_average(auctions['ecpm'])} on average; the winner's was {fmt.format_average(auctions['winningEcpm'])}."
    found.append(FunnelStep(label=STEPS["won"].label, left=auctions["won"], note=note, kind="good"))
    with add_card("In the auctions since then"):
        build_funnel(found, description="In the auctions since then")


async def _show_placements(api: ApiClient, campaign_id: str) -> None:
    rows = await api.get_items("/admin/assignments", campaignId=campaign_id, pageSize=LISTED_MAX)
    places = {row["placementSlug"]: row["placementLabel"] for row in rows}
    with add_card("Check a reader of one of its placements"):
        if not places:
            ui.label("It has no placements yet.").classes("quiet")
            return
        with add_div("row-of"):
            for slug, label in places.items():
                add_link_button(label, f"/console/why?placement={slug}", icon="person_search")
