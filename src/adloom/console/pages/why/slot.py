"""The page "Why?" for a contextual slot: what its page is about, and what became of every creative that wants it."""

from collections import Counter
from typing import Final

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components import format as fmt
from adloom.console.components.charts.bars import build_funnel
from adloom.console.components.layout import add_card, add_empty_state, add_facts, add_notice
from adloom.console.page import PageVisit
from adloom.console.pages.why.candidates import (
    NumberColumn,
    build_candidate_table,
    explain_record,
    list_funnel_steps,
    show_score,
)
from adloom.console.shell import PUBLISHER_SIDE
from adloom.core.caller import Role

FUNNEL: Final = "From all creatives to the one that is shown"
STATES: Final = {
    "known": "Known",
    "stale": "Known, and to be classified again",
    "unknown": "Not known yet: nobody has crawled it, and no browser has sent its text",
}
# Chance is a part of every choice, so the words are others than those of an auction.
CHOSEN: Final = {
    "won": "Its score was the highest of this draw.",
    "lost": "Another creative had a higher score in this draw. Visitors get another draw each.",
}


async def show_slot(visit: PageVisit, placement: Json, beside: ui.element, below: ui.element) -> None:
    """Explain a slot for the page in the address."""
    url = visit.query.get("url", "")
    if not url:
        with beside:
            _ask_for_page(visit, placement)
        return
    body = {"slot": placement["slug"], "url": url}
    if visit.query.get("userId"):
        body["userId"] = visit.query["userId"]
    answer = await visit.api.post("/v1/explain", body)
    candidates = [_adapt(one) for one in answer["candidates"]]
    with beside:
        _show_chosen(answer, candidates)
        with add_card("The page"):
            add_facts(
                [
                    ("Address", answer["page"]["url"]),
                    ("State", _describe_state(answer)),
                    *_list_topics(answer),
                ]
            )
        if candidates:
            won = sum(one["outcome"] == "won" for one in candidates)
            lost = sum(one["outcome"] == "lost" for one in candidates)
            removed = Counter(one["removedBy"] for one in candidates if one["outcome"] == "removed")
            with add_card(FUNNEL):
                steps = list_funnel_steps(removed, lost=lost, won=won, is_auction=True, is_contextual=True)
                build_funnel(steps, description=FUNNEL)
    with below:
        if candidates:
            with add_card("Creatives", note=f"{len(candidates):,}", classes="flush"):
                build_candidate_table(
                    candidates,
                    role=visit.role,
                    is_auction=True,
                    placement_id=placement["id"],
                    numbers=[FIT] if visit.role is Role.PUBLISHER else NUMBERS,
                )


def _ask_for_page(visit: PageVisit, placement: Json) -> None:
    can_open = visit.role in PUBLISHER_SIDE and placement["siteId"] is not None
    add_empty_state(
        "article",
        "Which page?",
        "This placement is filled by what its page says: enter the page's address.",
        action="To the pages of its site" if can_open else "",
        href=f"/console/sites/{placement['siteId']}?tab=pages" if can_open else "",
    )


FIT: Final[NumberColumn] = ("Fit", "num", lambda one: fmt.format_percent(one["categoryScore"]))
NUMBERS: Final[list[NumberColumn]] = [
    ("Bid CPM", "num", lambda one: fmt.format_price(one["maxCpm"])),
    ("Drawn CTR", "num", lambda one: fmt.format_percent(one.get("sampledCtr"))),
    ("Score", "num", lambda one: show_score(one.get("score"), places=4)),
    FIT,
    ("Price CPM", "num strong", lambda one: fmt.format_price(one.get("priceCpm"))),
]


def _adapt(one: Json) -> Json:
    """Return a creative as the table of candidates takes it."""
    outcome = one["outcome"]
    reason = CHOSEN.get(outcome) or explain_record(one.get("removedBy"), outcome)
    return {**one, "adId": one["bannerId"], "reason": reason}


def _show_chosen(answer: Json, candidates: list[Json]) -> None:
    won = next((one for one in candidates if one["outcome"] == "won"), None)
    if won is not None:
        price = answer.get("priceCpm")
        paid = "" if price is None else f", for {fmt.format_price(price)} per thousand impressions"
        add_notice(f"“{won['title']}” is shown in this draw{paid}.", kind="good")
    elif candidates:
        add_notice("None of the creatives that want this slot is shown.", kind="warn")
    else:
        add_notice("No creative wants this slot.", kind="warn")
    if answer["throttle"]:
        add_notice(
            f"Pacing holds back {fmt.format_percent(answer['throttle'])} of the requests of those that are left."
        )


def _describe_state(answer: Json) -> str:
    return STATES[answer["page"]["state"]]


def _list_topics(answer: Json) -> list[tuple[str, str]]:
    topics = [
        f"{one['name']} ({fmt.format_percent(one['confidence'])})" for one in answer["page"]["categories"]
    ]
    return [("About", ", ".join(topics))] if topics else []
