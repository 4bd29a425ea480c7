"""Why a campaign does not deliver: every step between it and a reader, and the auctions of the last hour."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import ApiClient, Json, ProblemError
from adloom.console.components import format as shown
from adloom.console.components.attributes import attributed
from adloom.console.components.funnel import Step, funnel
from adloom.console.components.heading import badge, card, meter
from adloom.console.components.notice import Kind, empty_state, notice
from adloom.console.components.tile import Tile
from adloom.console.page import Visit
from adloom.console.pages.why.candidates import amount
from adloom.console.pages.why.steps import AUCTION, step_of
from adloom.console.words import shell
from adloom.console.words import why as words

LISTED_MAX: Final = 100
ICONS: Final = {
    "ok": ("check_circle_outline", "good"),
    "limits": ("warning_amber", "warn"),
    "stops": ("block", "bad"),
}
METERS: Final = {"ok": "good", "limits": "warn", "stops": "bad"}
# Which part of the campaign's page changes a step; its moves stand on the first.
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


async def show_campaign(visit: Visit) -> None:
    """Show what keeps a campaign back, or ask which campaign."""
    campaign_id = visit.query.get("campaign", "")
    await _chooser(visit.api, campaign_id)
    if not campaign_id:
        empty_state("campaign", words.CHOOSE_CAMPAIGN, words.CHOOSE_CAMPAIGN_NOTE)
        return
    try:
        found = await visit.api.get(f"/admin/campaigns/{campaign_id}/delivery")
    except ProblemError as error:
        notice(error.message, kind="bad", title=shell.COULD_NOT_LOAD)
        return
    states = {check["state"] for check in found["checks"]}
    kind: Kind = "bad" if "stops" in states else "good" if found["impressions"] else "warn"
    title = words.HOW_IT_GOES if kind == "good" else words.WHY_NOT
    notice(found["verdict"], kind=kind, title=title.format(name=found["name"]))
    _figures(found)
    with card(
        words.STEP_BY_STEP, note=words.SINCE.format(moment=shown.full_moment(found["since"])), classes="flush"
    ):
        _checks(found)
    if found["auctions"]["held"]:
        _auctions(found["auctions"])
    await _placements(visit.api, campaign_id)


async def _chooser(api: ApiClient, campaign_id: str) -> None:
    listed = (await api.get("/admin/campaigns", pageSize=LISTED_MAX, sort="name"))["items"]
    names = {one["id"]: one["name"] for one in listed}
    if campaign_id and campaign_id not in names:
        names[campaign_id] = campaign_id
    field = ui.select(names, label=words.CAMPAIGN, value=campaign_id or None, with_input=True)
    field.props('outlined dense options-dense data-field="campaign"').style("max-width: 26rem")
    field.on_value_change(lambda event: ui.navigate.to(f"/console/why?campaign={event.value}"))


def _figures(found: Json) -> None:
    auctions = found["auctions"]
    with ui.element("div").classes("grid-of tiles"):
        Tile(words.IMPRESSIONS).update(shown.count(found["impressions"]))
        Tile(words.CLICKS).update(shown.count(found["clicks"]))
        if auctions["held"]:
            share = shown.percent(auctions["won"] / auctions["held"], places=0)
            Tile(words.AUCTIONS_HELD).update(shown.count(auctions["held"]))
            Tile(words.AUCTIONS_WON).update(
                shown.count(auctions["won"]), note=words.OF_ALL.format(share=share)
            )


def _checks(found: Json) -> None:
    with ui.element("ul").classes("al-checks"):
        for check in found["checks"]:
            icon, colour = ICONS[check["state"]]
            with attributed(ui.element("li"), data_check=check["name"], data_state=check["state"]):
                attributed(ui.icon(icon).classes(colour), aria_label=words.CHECK_STATES[check["state"]])
                ui.html(
                    Markup('<span class="strong">{}</span>').format(
                        words.CHECKS.get(check["name"], check["name"])
                    ),
                    sanitize=False,
                )
                ui.html(_said(check, found["campaignId"]), sanitize=False).classes("say")
                ui.html(_share(check), sanitize=False).classes("share")


def _said(check: Json, campaign_id: str) -> Markup:
    if not check["change"]:
        return Markup("{}").format(check["sentence"])
    tab = TABS.get(check["name"])
    link = Markup('<a href="/console/campaigns/{}{}">{}</a>').format(
        campaign_id, f"?tab={tab}" if tab else "", words.OPEN["campaign"]
    )
    return Markup('{}<div class="quiet small">{} {}</div>').format(check["sentence"], check["change"], link)


def _share(check: Json) -> Markup:
    passed, of = check["passed"], check["of"]
    if passed is None or not of:
        return (
            badge(words.CHECK_STATES[check["state"]], METERS[check["state"]])
            if check["state"] != "ok"
            else Markup("")
        )
    return Markup('<div class="small num">{}</div>{}').format(
        words.SHARE.format(passed=f"{passed:,}", of=f"{of:,}"), meter(passed / of, METERS[check["state"]])
    )


def _auctions(auctions: Json) -> None:
    left = auctions["held"]
    found = [Step(label=words.HELD, left=left)]
    left -= auctions["absent"]
    found.append(Step(label=words.CONSIDERED, left=left, note=words.CONSIDERED_NOTE))
    for name in AUCTION[:-1]:
        taken = sum(count for step, count in auctions["removed"].items() if step_of(step) == name)
        if taken:
            left -= taken
            found.append(Step(label=words.STEPS[name], left=left, note=words.STEP_NOTES[name]))
    note = words.STEP_NOTES["won"]
    if auctions["ecpm"] is not None and auctions["winningEcpm"] is not None:
        note = words.LOST_BY.format(own=amount(auctions["ecpm"]), theirs=amount(auctions["winningEcpm"]))
    found.append(Step(label=words.STEPS["won"], left=auctions["won"], note=note, kind="good"))
    with card(words.IN_AUCTIONS):
        funnel(found, description=words.IN_AUCTIONS)


async def _placements(api: ApiClient, campaign_id: str) -> None:
    links = (await api.get(f"/admin/campaigns/{campaign_id}/placements"))["items"]
    with card(words.ITS_PLACEMENTS):
        if not links:
            ui.label(words.NO_PLACEMENTS).classes("quiet")
            return
        with ui.element("div").classes("row-of"):
            for link in links:
                try:
                    placement = await api.get(f"/admin/placements/{link['placementId']}")
                except ProblemError:
                    continue  # Somebody else's: its name is not for everybody.
                ask = ui.button(placement["label"], icon="person_search").props("outline")
                attributed(ask, href=f"/console/why?placement={placement['slug']}")
