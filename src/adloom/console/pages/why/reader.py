"""Why, for a reader: somebody asks a placement, and every candidate is judged."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from nicegui import ui

from adloom.console.client import ApiClient, Json, ProblemError
from adloom.console.components.attributes import attributed
from adloom.console.components.funnel import Step, funnel
from adloom.console.components.heading import card, facts
from adloom.console.components.notice import empty_state, notice
from adloom.console.components.toast import say_good
from adloom.console.page import Visit
from adloom.console.pages.why.candidates import amount, candidate_table
from adloom.console.pages.why.steps import steps
from adloom.console.words import shell
from adloom.console.words import why as words
from adloom.console.words.countries import COUNTRIES, LANGUAGES

ADDRESS: Final = "/console/why"
NOBODY: Final = str(UUID(int=0))
LISTED_MAX: Final = 100
SHORT_LIST: Final = 5  # Needs no search.
DEVICES: Final = ("desktop", "mobile", "tablet")
EITHER: Final = {"true": words.YES, "false": words.NO}
# The names of the serve route's parameters, which are those of the address here.
READER: Final = ("device", "country", "language", "segment", "loggedIn", "newVisitor", "referrer", "userId")
# What an auction calls them.
IN_AUCTIONS: Final = {"loggedIn": "loginState", "referrer": "referrerDomain"}


async def show_reader(visit: Visit) -> None:
    """Show the question, and the answer where it is asked."""
    places = await _placements(visit.api)
    asked = visit.query.get("placement", "")
    placement = next((one for one in places if one["slug"] == asked), None)
    if asked and placement is None:
        placement = await _found(visit.api, asked)
    with ui.element("div").classes("al-aside"):
        with card(words.READER):
            _form(visit.query, places)
        beside = ui.element("div").classes("stack")
    below = ui.element("div").classes("stack")
    if not asked:
        with beside:
            empty_state("help_outline", words.CHOOSE, words.CHOOSE_NOTE)
        return
    try:
        await _answer(visit, asked, placement, beside, below)
    except ProblemError as error:
        with beside:
            notice(error.message, kind="bad", title=shell.COULD_NOT_LOAD)


async def _placements(api: ApiClient) -> list[Json]:
    try:
        return (await api.get("/admin/placements", pageSize=LISTED_MAX, sort="slug"))["items"]
    except ProblemError:
        return []  # An advertiser has none of its own, but may name one.


async def _found(api: ApiClient, slug: str) -> Json | None:
    try:
        found = (await api.get("/admin/placements", search=slug, pageSize=LISTED_MAX))["items"]
    except ProblemError:
        return None
    return next((one for one in found if one["slug"] == slug), None)


def _form(query: Mapping[str, str], places: list[Json]) -> None:
    slugs = {one["slug"]: f"{one['label']} ({one['slug']})" for one in places}
    asked = query.get("placement")
    if asked and asked not in slugs:
        slugs[asked] = asked
    fields: dict[str, Any] = {}
    with ui.element("div").classes("al-fields"):
        fields["placement"] = ui.select(
            slugs, label=words.PLACEMENT, value=asked, with_input=True, new_value_mode="add-unique"
        ).classes("wide")
        choices: tuple[tuple[str, str, Mapping[str, str]], ...] = (
            ("device", words.DEVICE, {one: one for one in DEVICES}),
            ("country", words.COUNTRY, COUNTRIES),
            ("language", words.LANGUAGE, LANGUAGES),
            ("loggedIn", words.LOGGED_IN, EITHER),
            ("newVisitor", words.NEW_VISITOR, EITHER),
        )
        for name, label, options in choices:
            given = query.get(name)
            known = dict(options) if given is None or given in options else {**options, given: given}
            fields[name] = ui.select(
                known, label=label, value=given, clearable=True, with_input=len(known) > SHORT_LIST
            )
        fields["segment"] = ui.input(words.SEGMENT, value=query.get("segment", ""))
        fields["referrer"] = ui.input(
            words.REFERRER, value=query.get("referrer", ""), placeholder=words.REFERRER_HINT
        )
        fields["at"] = ui.input(words.AT, value=query.get("at", "")).props(
            'type="datetime-local" stack-label'
        )
        fields["userId"] = ui.input(words.USER, value=query.get("userId", "")).classes("wide")
        fields["userId"].props["hint"] = words.USER_HINT
        fields["at"].tooltip(words.AT_HINT)
    for name, field in fields.items():
        attributed(field, data_field=name).props("outlined dense options-dense")

    def ask() -> None:
        given = {name: str(field.value).strip() for name, field in fields.items() if field.value}
        ui.navigate.to(f"{ADDRESS}?{urlencode(given)}")

    fields["userId"].on("keydown.enter", ask)
    with ui.element("div").classes("row-of apart").style("margin-top: 1.5rem"):
        ui.button(words.EXPLAIN, icon="search", on_click=ask).props("unelevated")
        ui.button(words.COPY_LINK, on_click=_copy).props("flat")


def _copy() -> None:
    ui.run_javascript("navigator.clipboard?.writeText(location.href)")
    say_good(words.LINK_COPIED)


async def _answer(
    visit: Visit, slug: str, placement: Json | None, beside: ui.element, below: ui.element
) -> None:
    given = {name: visit.query[name] for name in READER if visit.query.get(name)}
    at = _moment(visit.query.get("at"))
    is_auction = placement is not None and placement["delivery"] == "auction"
    answer = await (_auction if is_auction else _direct)(visit, slug, given, at)
    candidates: list[Json] = answer["candidates"]
    with beside:
        if not candidates:
            empty_state(
                "inbox",
                words.NO_CANDIDATES,
                words.NO_CANDIDATES_NOTE,
                action=words.TO_CAMPAIGNS,
                href="/console/campaigns",
            )
            return
        won = [one for one in candidates if one["outcome"] == "won"]
        if is_auction:
            _say_who_wins(won, answer)
        else:
            _say_who_is_shown(won)
        title = words.FUNNEL_AUCTION if is_auction else words.FUNNEL
        with card(title):
            funnel(_funnel(answer, won=len(won), is_auction=is_auction), description=title)
    with below:
        with card(words.CANDIDATES, note=f"{_count(answer):,}", classes="flush"):
            await candidate_table(
                visit.api,
                candidates,
                is_auction=is_auction,
                placement_id=placement["id"] if placement else None,
            )
        if "context" in answer:
            with card(words.CONTEXT):
                context = answer["context"]
                facts([(label, _seen(name, context[name])) for name, label in words.CONTEXT_NAMES.items()])


def _funnel(answer: Json, *, won: int, is_auction: bool) -> list[Step]:
    """Count everybody: of a large market not all candidates are sent, but all are counted."""
    removed: Mapping[str, int] = answer["removed"]
    lost = _count(answer) - sum(removed.values()) - won
    return steps(removed, lost=lost, won=won, is_auction=is_auction)


def _count(answer: Json) -> int:
    return answer.get("candidateCount", len(answer["candidates"]))


async def _direct(visit: Visit, slug: str, given: Mapping[str, str], at: str | None) -> Json:
    return await visit.api.get(f"/banners/explain/{slug}", **given, at=at)


async def _auction(visit: Visit, slug: str, given: Mapping[str, str], at: str | None) -> Json:
    reader = dict(given)
    user_id = reader.pop("userId", NOBODY)
    body = {
        "userId": user_id,
        "placement": slug,
        "userContext": {IN_AUCTIONS.get(name, name): value for name, value in reader.items()},
    }
    return await visit.api.post("/api/v1/ads/explain", body, at=at)


def _seen(name: str, value: object) -> str:
    if value is None:
        return words.UNKNOWN
    if isinstance(value, bool):
        return words.YES if value else words.NO
    return words.DAYS[value] if name == "day" and isinstance(value, int) else str(value)


def _say_who_is_shown(won: list[Json]) -> None:
    if not won:
        notice(words.NOBODY_IS_SHOWN, kind="warn")
    elif len(won) == 1:
        notice(words.ONE_IS_SHOWN.format(title=won[0]["title"]), kind="good")
    else:
        notice(words.SEVERAL_ARE_SHOWN.format(count=len(won)), kind="good")


def _say_who_wins(won: list[Json], answer: Json) -> None:
    if not won:
        notice(words.NOBODY_WINS, kind="warn")
        return
    title, price = won[0].get("title") or words.SOMEBODY, amount(answer["finalPrice"], places=4)
    notice(words.WINS_AT.format(title=title, price=price), kind="good")


def _moment(text: str | None) -> str | None:
    """Read a moment of the address: a wall clock of UTC, as the browser writes it, or in full."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text  # The API says what is wrong with it.
    return f"{at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
