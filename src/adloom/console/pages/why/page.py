"""The page "Why?": which ad a reader would get, and why. Its address holds the question, so that it can be shared."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json, ProblemError
from adloom.console.components import format as fmt
from adloom.console.components.charts.bars import build_funnel
from adloom.console.components.forms.fields import add_picker
from adloom.console.components.forms.inputs import LongSelect
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_empty_state,
    add_facts,
    add_heading,
    add_notice,
    add_view_links,
    set_attributes,
)
from adloom.console.components.messages import notify_success
from adloom.console.page import PageVisit, register_page
from adloom.console.pages.why.campaign import show_campaign, warn_of_unknown_countries
from adloom.console.pages.why.candidates import build_candidate_table, list_funnel_steps, show_recorded
from adloom.console.pages.why.slot import show_slot
from adloom.console.words.field_labels import DEVICE_NAMES, name_device
from adloom.core.caller import Role

CONTEXT_NAMES: Final = {
    "device": "Device",
    "country": "Country",
    "language": "Language",
    "loggedIn": "Logged in",
    "newVisitor": "New visitor",
    "referrerDomain": "Came from",
    "segment": "Segment",
    "hour": "Hour at the placement",
    "day": "Day at the placement",
}

ADDRESS: Final = "/console/why"
NOBODY: Final = str(UUID(int=0))
LISTED_MAX: Final = 100
SHORT_LIST: Final = 5  # Short enough without a search.
EITHER: Final = {"true": "Yes", "false": "No"}
# Parameters of the serve route; the page's address uses the same names.
READER: Final = ("device", "country", "language", "segment", "loggedIn", "newVisitor", "referrer", "userId")
AUCTION_OF_PUBLISHER: Final = (
    "Campaigns bid for every request of this placement, and the highest bid over its floor is shown. "
    "Who bids, and how much, is known to the advertisers and the house only. "
    "Reports have what the placement brings you."
)
BY_COUNTRY: Final = "targeting:country"
# Their names in an auction request.
IN_AUCTIONS: Final = {"loggedIn": "loginState", "referrer": "referrerDomain"}


async def show_reader(visit: PageVisit) -> None:
    asked = visit.query.get("placement", "")
    placement = await _find_placement(visit, asked) if asked else None
    with add_div("al-aside"):
        with add_card("The reader"):
            await _show_form(visit)
        beside = add_div("stack")
    below = add_div("stack")
    if not asked:
        with beside:
            add_empty_state(
                "help_outline",
                "Choose a placement",
                "Describe a reader, and see step by step which banners are left and why the others are not.",
            )
        return
    try:
        await _answer(visit, asked, placement, beside, below)
    except ProblemError as error:
        with beside:
            add_notice(error.message, kind="bad", title=strings.COULD_NOT_LOAD)


def _list_path(visit: PageVisit) -> str:
    """Return where placements are listed: an advertiser sees those that it can ask for."""
    return "/admin/offered-placements" if visit.role is Role.ADVERTISER else "/admin/placements"


async def _find_placement(visit: PageVisit, slug: str) -> Json | None:
    found = await visit.api.get_items(_list_path(visit), search=slug, pageSize=LISTED_MAX, sort="label")
    return next((one for one in found if one["slug"] == slug), None)


async def _show_form(visit: PageVisit) -> None:
    query = visit.query
    fields: dict[str, Any] = {}
    with add_div("al-fields"):
        placement = await add_picker(
            "Placement",
            query.get("placement"),
            api=visit.api,
            path=_list_path(visit),
            shown=lambda row: f"{row['label']} ({row['slug']})",
            key="slug",
            sort="label",
        )
        fields["placement"] = placement.classes("wide")
        choices: tuple[tuple[str, str, Mapping[str, str]], ...] = (
            ("device", "Device", DEVICE_NAMES),
            ("country", "Country", strings.COUNTRIES),
            ("language", "Language", strings.LANGUAGES),
            ("loggedIn", "Logged in", EITHER),
            ("newVisitor", "New visitor", EITHER),
        )
        for name, label, options in choices:
            given = query.get(name)
            known = dict(options) if given is None or given in options else {**options, given: given}
            fields[name] = LongSelect(
                known, label=label, value=given, clearable=True, with_input=len(known) > SHORT_LIST
            )
        fields["segment"] = ui.input("Segment", value=query.get("segment", ""))
        fields["referrer"] = ui.input(
            "Came from", value=query.get("referrer", ""), placeholder="news.example.com"
        ).classes("wide")
        fields["at"] = ui.input("At (UTC)", value=query.get("at", "")).props(
            'type="datetime-local" stack-label'
        )
        fields["at"].classes("wide").props["hint"] = "Counts and budgets are those of now."
        fields["url"] = ui.input(
            "Page", value=query.get("url", ""), placeholder="https://news.example.com/story"
        ).classes("wide")
        fields["url"].props["hint"] = "For contextual slots."
        fields["userId"] = ui.input("User id", value=query.get("userId", "")).classes("wide")
        fields["userId"].props["hint"] = "For frequency caps, in auctions and contextual slots."
    for name, field in fields.items():
        set_attributes(field, data_field=name).props("outlined dense options-dense")

    def ask() -> None:
        given = {name: str(field.value).strip() for name, field in fields.items() if field.value}
        ui.navigate.to(f"{ADDRESS}?{urlencode(given)}")

    fields["userId"].on("keydown.enter", ask)
    with add_div("row-of apart").style("margin-top: 1.5rem"):
        ui.button("Explain", icon="search", on_click=ask).props("unelevated")
        ui.button("Copy link", on_click=_copy).props("flat")


def _copy() -> None:
    ui.run_javascript("navigator.clipboard?.writeText(location.href)")
    notify_success("The address of this question is copied.")


async def _answer(
    visit: PageVisit, slug: str, placement: Json | None, beside: ui.element, below: ui.element
) -> None:
    given = {name: visit.query[name] for name in READER if visit.query.get(name)}
    at = _parse_moment(visit.query.get("at"))
    if placement is not None and placement["delivery"] == "contextual":
        await show_slot(visit, placement, beside, below)
        return
    is_auction = placement is not None and placement["delivery"] == "auction"
    if placement is not None and is_auction and visit.role is Role.PUBLISHER:
        with beside:
            add_notice(AUCTION_OF_PUBLISHER if placement["isActive"] else "The placement is switched off.")
        return
    if is_auction:
        answer = await _ask_auction(visit.api, slug, given, at)
    else:
        answer = await visit.api.get(f"/banners/explain/{slug}", **given, at=at)
    candidates: list[Json] = answer["candidates"]
    with beside:
        if not candidates:
            _show_nothing_assigned(visit)
            return
        won = [one for one in candidates if one["outcome"] == "won"]
        if is_auction:
            _show_winner(won, answer)
        else:
            _show_chosen(won)
        if BY_COUNTRY in answer["removed"] and not visit.query.get("country"):
            await warn_of_unknown_countries(visit)
        title = strings.AUCTION_FUNNEL if is_auction else "From all candidates to what is shown"
        with add_card(title):
            # In a large market not all candidates are sent, but all are counted.
            lost = _count(answer) - sum(answer["removed"].values()) - len(won)
            steps = list_funnel_steps(answer["removed"], lost=lost, won=len(won), is_auction=is_auction)
            build_funnel(steps, description=title)
    with below:
        with add_card("Candidates", note=f"{_count(answer):,}", classes="flush"):
            build_candidate_table(
                candidates,
                role=visit.role,
                is_auction=is_auction,
                placement_id=placement["id"] if placement else None,
            )
        if "context" in answer:
            with add_card("As the rules see the reader"):
                context = answer["context"]
                add_facts(
                    [(label, _format_context(name, context[name])) for name, label in CONTEXT_NAMES.items()]
                )


def _show_nothing_assigned(visit: PageVisit) -> None:
    title = "Nothing is assigned to this placement"
    if visit.role is Role.PUBLISHER:
        add_empty_state("inbox", title, "No campaign has a banner on it yet.")
        return
    note = "Link a campaign to it, and assign a banner to it there."
    add_empty_state("inbox", title, note, action="To the campaigns", href="/console/campaigns")


def _count(answer: Json) -> int:
    return answer.get("candidateCount", len(answer["candidates"]))


async def _ask_auction(api: ApiClient, slug: str, given: Mapping[str, str], at: str | None) -> Json:
    context = {IN_AUCTIONS.get(name, name): value for name, value in given.items() if name != "userId"}
    body = {"userId": given.get("userId", NOBODY), "placement": slug, "userContext": context}
    return await api.post("/api/v1/ads/explain", body, at=at)


def _format_context(name: str, value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if name == "device":
        return name_device(str(value))
    return strings.DAYS[value] if name == "day" and isinstance(value, int) else str(value)


def _show_chosen(won: list[Json]) -> None:
    if not won:
        add_notice("No banner would be shown to this reader.", kind="warn")
    elif len(won) == 1:
        add_notice(f"“{won[0]['title']}” would be shown to this reader.", kind="good")
    else:
        add_notice(f"{len(won)} banners would be shown to this reader.", kind="good")


def _show_winner(won: list[Json], answer: Json) -> None:
    if not won:
        add_notice("No banner would win this auction.", kind="warn")
        return
    title, price = won[0].get("title") or "another account's", fmt.format_price(answer["finalPrice"])
    add_notice(f"“{title}” would win, and pay {price} per thousand impressions.", kind="good")


def _parse_moment(text: str | None) -> str | None:
    """Parse a time of the address: local browser format as UTC, or a full time."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text  # The API explains the error.
    return f"{at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


@register_page(ADDRESS, title="Why?")
async def show_why(visit: PageVisit) -> None:
    is_publisher = visit.role is Role.PUBLISHER
    more = "" if is_publisher else ", how an auction was decided, and what stops a campaign"
    add_heading("Why?", note=f"Which ad a reader would get{more}.")
    views = [("For a reader", ADDRESS)]
    if not is_publisher:
        views += [("A campaign", f"{ADDRESS}?campaign="), ("A recorded auction", f"{ADDRESS}?auction=")]
    shown = next((name for name in ("campaign", "auction") if name in visit.query), "")
    add_view_links(views, current=f"{ADDRESS}?{shown}=" if shown else ADDRESS, label="Ways to ask")
    match shown:
        case "campaign":
            await show_campaign(visit)
        case "auction":
            await show_recorded(visit)
        case _:
            await show_reader(visit)
