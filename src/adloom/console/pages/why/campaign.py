"""Why a campaign does not deliver: every step between it and a reader, and its auctions of the last hour."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json, ProblemError
from adloom.console.components import format as fmt
from adloom.console.components.charts.bars import FunnelStep, funnel
from adloom.console.components.layout import (
    NoticeKind,
    Tile,
    badge,
    card,
    empty_state,
    link_button,
    meter,
    notice,
    set_attributes,
)
from adloom.console.page import PageVisit
from adloom.console.pages.why.candidates import AUCTION, amount, find_step

CHECK_STATES: Final = {"ok": "passes", "limits": "holds back", "stops": "stops"}
CHECKS: Final = {
    "status": "Status",
    "dates": "Dates",
    "placements": "Placements",
    "schedule": "Schedule",
    "targeting": "Targeting",
    "caps": "Caps",
    "budget": "Budget",
    "pacing": "Pacing",
    "requests": "Readers",
    "frequency": "Frequency",
    "floor": "Floors",
    "auctions": "Auctions",
    "rivals": "Other banners",
}


LISTED_MAX: Final = 100
ICONS: Final = {
    "ok": ("check_circle_outline", "good"),
    "limits": ("warning_amber", "warn"),
    "stops": ("block", "bad"),
}
METERS: Final = {"ok": "good", "limits": "warn", "stops": "bad"}
# The tab of the campaign's page that can change a step; the first has the status buttons.
TABS: Final = {
    "dates": "settings",
    "caps": "settings",
    "budget": "settings",
    "pacing": "settings",
    "floor": "settings",
    "auctions": "settings",
    "targeting": "targeting",
    "schedule": "schedule",
    "placements": "banners",
    "rivals": "banners",
}


async def show_campaign(visit: PageVisit) -> None:
    campaign_id = visit.query.get("campaign", "")
    await _chooser(visit.api, campaign_id)
    if not campaign_id:
        empty_state(
            "campaign",
            "Which campaign does not deliver?",
            "Every step between it and a reader is looked at, with what happened in the last hour.",
        )
        return
    try:
        found = await visit.api.get(f"/admin/campaigns/{campaign_id}/delivery")
    except ProblemError as error:
        notice(error.message, kind="bad", title=strings.COULD_NOT_LOAD)
        return
    states = {check["state"] for check in found["checks"]}
    kind: NoticeKind = "bad" if "stops" in states else "good" if found["impressions"] else "warn"
    title = "How does “{name}” deliver?" if kind == "good" else "Why does “{name}” not deliver?"
    notice(found["verdict"], kind=kind, title=title.format(name=found["name"]))
    _figures(found)
    with card("Step by step", note=f"Since {fmt.full_moment(found['since'])}", classes="flush"):
        _checks(found)
    if found["auctions"]["held"]:
        _auctions(found["auctions"])
    await _placements(visit.api, campaign_id)


async def _chooser(api: ApiClient, campaign_id: str) -> None:
    listed = (await api.get("/admin/campaigns", pageSize=LISTED_MAX, sort="name"))["items"]
    names = {one["id"]: one["name"] for one in listed}
    if campaign_id and campaign_id not in names:
        names[campaign_id] = campaign_id
    field = ui.select(names, label="Campaign", value=campaign_id or None, with_input=True)
    field.props('outlined dense options-dense data-field="campaign"').style("max-width: 26rem")
    field.on_value_change(lambda event: ui.navigate.to(f"/console/why?campaign={event.value}"))


def _figures(found: Json) -> None:
    auctions = found["auctions"]
    with ui.element("div").classes("grid-of tiles"):
        Tile("Impressions").update(fmt.count(found["impressions"]))
        Tile("Clicks").update(fmt.count(found["clicks"]))
        if auctions["held"]:
            share = fmt.percent(auctions["won"] / auctions["held"], places=0)
            Tile("Auctions it could win").update(fmt.count(auctions["held"]))
            Tile("Auctions won").update(fmt.count(auctions["won"]), note=f"{share} of all")


def _checks(found: Json) -> None:
    with ui.element("ul").classes("al-checks"):
        for check in found["checks"]:
            icon, colour = ICONS[check["state"]]
            with set_attributes(ui.element("li"), data_check=check["name"], data_state=check["state"]):
                set_attributes(ui.icon(icon).classes(colour), aria_label=CHECK_STATES[check["state"]])
                ui.html(
                    Markup('<span class="strong">{}</span>').format(CHECKS.get(check["name"], check["name"])),
                    sanitize=False,
                )
                ui.html(_sentence(check, found["campaignId"]), sanitize=False).classes("say")
                ui.html(_share(check), sanitize=False).classes("share")


def _sentence(check: Json, campaign_id: str) -> Markup:
    if not check["change"]:
        return Markup("{}").format(check["sentence"])
    tab = TABS.get(check["name"])
    link = Markup('<a href="/console/campaigns/{}{}">{}</a>').format(
        campaign_id, f"?tab={tab}" if tab else "", strings.OPEN_LABELS["campaign"]
    )
    return Markup('{}<div class="quiet small">{} {}</div>').format(check["sentence"], check["change"], link)


def _share(check: Json) -> Markup:
    passed, of = check["passed"], check["of"]
    if passed is None or not of:
        return (
            badge(CHECK_STATES[check["state"]], METERS[check["state"]])
            if check["state"] != "ok"
            else Markup("")
        )
    return Markup('<div class="small num">{}</div>{}').format(
        "{passed} of {of}".format(passed=f"{passed:,}", of=f"{of:,}"),
        meter(passed / of, METERS[check["state"]]),
    )


def _auctions(auctions: Json) -> None:
    left = auctions["held"]
    found = [FunnelStep(label="Held", left=left)]
    left -= auctions["absent"]
    found.append(
        FunnelStep(
            label="It was a candidate", left=left, note="Not a candidate: not running then, or without a bid."
        )
    )
    for name in AUCTION[:-1]:
        taken = sum(count for step, count in auctions["removed"].items() if find_step(step) == name)
        if taken:
            left -= taken
            found.append(
                FunnelStep(label=strings.FUNNEL_STEPS[name], left=left, note=strings.FUNNEL_STEP_NOTES[name])
            )
    note = strings.FUNNEL_STEP_NOTES["won"]
    if auctions["ecpm"] is not None and auctions["winningEcpm"] is not None:
        note = f"Where it lost, its eCPM was {amount(auctions['ecpm'])} on average; the winner's was {amount(auctions['winningEcpm'])}."
    found.append(FunnelStep(label=strings.FUNNEL_STEPS["won"], left=auctions["won"], note=note, kind="good"))
    with card("In the auctions since then"):
        funnel(found, description="In the auctions since then")


async def _placements(api: ApiClient, campaign_id: str) -> None:
    links = (await api.get(f"/admin/campaigns/{campaign_id}/placements"))["items"]
    with card("Check a reader of one of its placements"):
        if not links:
            ui.label("It has no placements yet.").classes("quiet")
            return
        with ui.element("div").classes("row-of"):
            for link in links:
                try:
                    placement = await api.get(f"/admin/placements/{link['placementId']}")
                except ProblemError:
                    continue  # Another account's placement: its name is not visible.
                link_button(
                    placement["label"], f"/console/why?placement={placement['slug']}", icon="person_search"
                )
