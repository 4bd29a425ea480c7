"""The candidates of a decision, also of a recorded auction: what removed them, as a funnel and as a table."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, ProblemError, shorten_id
from adloom.console.components import format as fmt
from adloom.console.components.charts.bars import FunnelStep, build_funnel
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_empty_state,
    add_hint,
    add_html,
    add_link_button,
    add_notice,
    build_badge,
)
from adloom.console.page import PageVisit
from adloom.console.shell import PAGES_OF
from adloom.console.words.field_labels import name_fields
from adloom.core.caller import Role

DIRECT: Final = ("bid", "status", "dates", "targeting", "schedule", "caps", "budget", "floor", "slots")
REASONS: Final = {
    "not_held": "The budget had nothing to offer at that moment.",
    "budget_pending": "A delivery process waited for a piece of the campaign's budget, which the worker grants.",
    "caps_and_budgets": "A cap or a budget of the campaign left nothing.",
    "floor": "Its eCPM was under the floor of the placement.",
    "frequency_cap": "The reader had seen the ad as often as its frequency caps allow.",
    "frequency_unknown": "It was not known how often the reader had seen the ad, which has a frequency cap.",
    "pacing": "The campaign spreads its daily budget over the day, and was ahead of it.",
    "daily_budget": "The daily budget of the campaign was used up.",
    "total_budget": "The total budget of the campaign was used up.",
    "advertiser_budget": "The daily budget of the advertiser was used up.",
    "campaign_dates": "The campaign was outside its dates.",
    "impression_cap": "The campaign has had its impressions.",
    "click_cap": "The campaign has had its clicks.",
    "targeting": "Its targeting does not want this reader.",
    "schedule": "It was not the time of the banner ({part}).",
    "category_mismatch": "The page is about something else than the campaign wants.",
    "category_excluded": "The page is also about what the campaign excludes.",
    "size_mismatch": "The banner has another size than the slot.",
    "on_page_already": "The campaign or the banner was on the page already.",
    "not_approved": "The publisher has not approved the banner.",
    "rejected": "The publisher has rejected the banner.",
    "ad_product_blocked": "The site blocks what the banner advertises.",
    "domain_blocked": "The site blocks the domain that the banner leads to.",
    "site_blocked": "The advertiser blocks the site.",
    "campaign_inactive": "The campaign was not active, or it was not the time of its banner.",
    "below_floor": "Its bid was under the floor of the slot.",
    "not_shortlisted": "Others that fit the page bid more: it was not on the shortlist of the slot.",
    "budget": "A budget of the campaign, or of its advertiser, had nothing to offer at that moment.",
    "frequency": "The reader had seen the ad as often as its frequency caps allow.",
    "won": "It had the highest eCPM.",
    "lost": "Another ad had a higher eCPM.",
}
WON: Final = "won"
LOST: Final = "lost"
KINDS: Final = {"won": "good", "lost": "warn", "removed": ""}
ON_BANNER: Final = ("banner_", "schedule", "frequency_")
ON_PLACEMENT: Final = ("placement_", "no_partial_render")
DECIDED: Final = ("link_requested", "link_refused", "banner_refused")  # By the publisher, among the ads.
FLOOR: Final = "floor"  # An outbid campaign changes the same fields as one under the floor.
SHOWN_MAX: Final = 200  # More rows than a person reads; the funnel counts all.
BIDS_MAX: Final = 256
# Names of a recorded context that the page's address calls otherwise.
TO_PARAMETERS: Final = {"loginState": "loggedIn", "referrerDomain": "referrer"}
OF_TIME: Final = frozenset({"hour", "day"})


class WhyStep(msgspec.Struct, frozen=True):
    """A step of the funnel: what it says of those that pass, why others do not, and the reasons that belong to it."""

    label: str
    note: str
    reasons: tuple[str, ...] = ()
    tab: str = ""  # Of the campaign's page that can change it.


# fmt: off
STEPS: Final = {
    "bid": WhyStep("Bid something", "The campaign bids nothing.", ("no_bid",), "settings"),
    "status": WhyStep("Switched on", "Paused, draft, ended, not accepted or switched off.", (
        "placement_inactive", "placement_not_direct", "advertiser_deleted", "campaign_deleted", "campaign_draft",
        "campaign_paused", "campaign_ended", "campaign_cancelled", "campaign_undated", "link_requested",
        "link_refused", "link_inactive", "site_missing", "site_blocked", "warmup", "banner_refused",
        "assignment_inactive", "rule_unreadable", "banner_deleted", "banner_inactive",
    )),
    "page": WhyStep("Fit the page", "Wants other categories or excludes one of the page, has another size, or is on it already."),
    "dates": WhyStep("Within their dates", "Before the start or after the end of the campaign.",
                     ("campaign_dates",), "settings"),
    "targeting": WhyStep("For this reader", "Targeting rules that do not want this reader.",
                         ("targeting",), "targeting"),
    "schedule": WhyStep("Within their schedule", "It is not the time of the banner.", ("schedule",)),
    "caps": WhyStep("Under their caps", "The campaign has had all that its caps allow.",
                    ("impression_cap", "click_cap"), "settings"),
    "budget": WhyStep(
        "With budget left",
        "A budget, or the pace of a day, leaves nothing for one more offer, or has not been granted yet.",
        ("daily_budget", "total_budget", "advertiser_budget", "pacing", "caps_and_budgets", "budget_pending", "not_held"),
        "settings"),
    "frequency": WhyStep("Not seen too often", "The reader has seen the ad often enough.",
                         ("frequency_cap", "frequency_unknown")),
    "floor": WhyStep("Over the floor", "The eCPM is under the floor of the placement.", ("floor",), "settings"),
    "slots": WhyStep("Have a slot", "Banners that come before fill all slots, or a fallback is not needed.",
                     ("no_partial_render",)),
    "listed": WhyStep(
        "Among the best bids", "Others bid more, and are on the shortlist of the slot.", tab="settings"),
    "won": WhyStep("Highest bid", "Others have a higher eCPM."),
    "drawn": WhyStep("Best score", "Others have a higher score in this draw."),
}
# fmt: on
STEP_OF: Final = {reason: name for name, step in STEPS.items() for reason in step.reasons}
AUCTION: Final = tuple(name for name in STEPS if name not in {"slots", "page", "listed", "drawn"})
CONTEXTUAL: Final = tuple(
    name for name in STEPS if name not in {"slots", "bid", "dates", "schedule", "caps", "won"}
)
# Contextual slots have names of their own for what the other kinds name in more detail.
SLOT_STEPS: Final = {
    "category_mismatch": "page",
    "category_excluded": "page",
    "size_mismatch": "page",
    "on_page_already": "page",
    "not_approved": "status",
    "rejected": "status",
    "ad_product_blocked": "status",
    "domain_blocked": "status",
    "campaign_inactive": "status",
    "below_floor": "floor",
    "not_shortlisted": "listed",
    "budget": "budget",
    "frequency": "frequency",
}


def find_step(removed_by: str) -> str:
    head = removed_by.partition(":")[0]
    return STEP_OF.get(head) or SLOT_STEPS.get(head, "status")


def count_by_step(removed: Mapping[str, int]) -> Counter[str]:
    taken = Counter[str]()
    for name, count in removed.items():
        taken[find_step(name)] += count
    return taken


def list_funnel_steps(
    removed: Mapping[str, int], *, lost: int, won: int, is_auction: bool, is_contextual: bool = False
) -> list[FunnelStep]:
    """Build the funnel from removals by name, and the numbers of losers and winners."""
    order = CONTEXTUAL if is_contextual else AUCTION if is_auction else DIRECT
    taken = count_by_step(removed)
    taken[order[-1]] += lost
    left = sum(taken.values()) + won
    found = [FunnelStep(label="All candidates", left=left)]
    for name in order:
        left -= taken[name]
        kind = "good" if name == order[-1] and left else ""
        found.append(FunnelStep(label=STEPS[name].label, left=left, note=STEPS[name].note, kind=kind))
    return found


def find_noun_to_change(removed_by: str | None, outcome: str, *, is_auction: bool) -> str | None:
    """Return the noun whose page can change the outcome; None for a winner."""
    if outcome == WON:
        return None
    name = removed_by or ""
    if name.startswith(ON_BANNER):
        return "banner"
    if name.startswith(ON_PLACEMENT) or (outcome == LOST and not is_auction):
        return "placement"
    return "advertiser" if name in {"advertiser_budget", "advertiser_deleted"} else "campaign"


def explain_record(removed_by: str | None, outcome: str) -> str:
    """Return the reason in words where the record has only the name of a step."""
    if outcome in {WON, LOST}:
        return REASONS[outcome]
    head, _, part = (removed_by or "").partition(":")
    if head == "targeting" and part:
        return f"Its rule about {part.replace('_', ' ')} does not want this reader."
    sentence = REASONS.get(head, "The record does not say more.")
    return sentence.format(part=part.replace("_", " "))


NumberColumn = tuple[
    str, str, Callable[[Json], str]
]  # Label, classes and content; its label stays on a phone.


def build_candidate_table(
    candidates: Sequence[Json],
    *,
    role: Role,
    is_auction: bool,
    placement_id: str | None = None,
    numbers: Sequence[NumberColumn] | None = None,
) -> None:
    """Show the candidates in the order of the API, those that came furthest first, with links to pages of the role."""
    rows = candidates[:SHOWN_MAX]
    won = "won" if is_auction else "shown"
    columns: list[NumberColumn] = [
        ("Banner", "who", lambda one: _build_name(one, role)),
        ("Outcome", "", lambda one: build_badge(won if one["outcome"] == WON else one["outcome"], KINDS[one["outcome"]])),
        ("Why", "al-reason", lambda one: _build_reason(one, _build_link(one, role, is_auction=is_auction, placement_id=placement_id))),
    ]  # fmt: skip
    columns += (AUCTION_NUMBERS if numbers is None else numbers) if is_auction else []
    head = Markup("").join(
        Markup('<th scope="col" class="{}">{}</th>').format(classes if "num" in classes else "", label)
        for label, classes, _ in columns
    )
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(_build_cell(label, classes, show(one)) for label, classes, show in columns)
        )
        for one in rows
    )
    add_html(
        Markup(
            '<div class="al-table-scroll"><table class="al-table al-candidates"><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
        ).format(head, body),
    )


def _build_cell(label: str, classes: str, shown: str) -> Markup:
    named = Markup(' data-label="{}"').format(label) if "num" in classes else ""
    return Markup('<td class="{}"{}>{}</td>').format(classes, named, shown)


def _build_name(one: Json, role: Role) -> Markup:
    banner_id, campaign_id = one.get("adId"), one.get("campaignId")
    if banner_id is None or campaign_id is None:
        return Markup('<span class="quiet">{}</span>').format("another account's")
    title = one.get("title") or shorten_id(banner_id)
    if role not in PAGES_OF["campaign"]:
        return Markup('<span class="strong">{}</span><div class="quiet small">{}</div>').format(
            title, one.get("campaignName") or ""
        )
    return Markup(
        '<a href="/console/banners/{}">{}</a><div class="small"><a class="quiet" href="/console/campaigns/{}">{}</a></div>'
    ).format(banner_id, title, campaign_id, one.get("campaignName") or shorten_id(campaign_id))


def _build_reason(one: Json, link: Markup) -> Markup:
    change = Markup('<div class="quiet small">{}{}</div>').format(name_fields(one.get("change") or ""), link)
    return Markup("<div>{}</div>{}").format(name_fields(one.get("reason") or ""), change)


def _build_link(one: Json, role: Role, *, is_auction: bool, placement_id: str | None) -> Markup:
    kind = find_noun_to_change(one.get("removedBy"), one["outcome"], is_auction=is_auction)
    if kind is None or one.get("campaignId") is None:
        return Markup("")
    ids: dict[str, Any] = {
        "campaign": one.get("campaignId"),
        "banner": one.get("adId"),
        "placement": one.get("placementId") or placement_id,
    }
    if role is Role.PUBLISHER:
        if one.get("change") is None:
            return Markup("")
        kind = "placement"
    # The campaign's page names the owner of the budget.
    kind = kind if ids.get(kind) else "campaign"
    if role not in PAGES_OF[kind]:
        return Markup("")
    tab = _find_tab(one.get("removedBy") or FLOOR, kind)
    return Markup(' <a href="/console/{}s/{}{}">{}</a>').format(
        kind, ids[kind], f"?tab={tab}" if tab else "", f"Open the {kind}"
    )


def _find_tab(removed_by: str, kind: str) -> str:
    """Return the tab of the page on which the reason can be changed."""
    if kind == "placement":
        return "ads" if removed_by in DECIDED else ""
    return STEPS[find_step(removed_by)].tab if kind == "campaign" else ""


def show_score(value: float | None, *, places: int = 2) -> str:
    return strings.NONE if value is None else f"{value:,.{places}f}"


def _format_bid(one: Json) -> str:
    bid = one.get("bid")
    return strings.NONE if bid is None else f"{fmt.format_price(bid)} {(one.get('bidType') or '').upper()}"


AUCTION_NUMBERS: Final[list[NumberColumn]] = [
    ("eCPM", "num", lambda one: fmt.format_average(one.get("ecpm"))),
    ("Bid", "num", _format_bid),
    ("To win", "num strong", lambda one: fmt.format_price(one.get("wouldHaveToBid"))),
    ("CTR", "num", lambda one: fmt.format_percent(one.get("predictedCtr"))),
    ("Quality", "num", lambda one: show_score(one.get("qualityScore"))),
]


async def show_recorded(visit: PageVisit) -> None:
    auction_id = visit.query.get("auction", "")
    if not auction_id:
        add_empty_state(
            "gavel",
            "Which auction?",
            "Every auction of the last days is on record. Take one from the list, or enter its id.",
            action="To the auctions",
            href="/console/auctions",
        )
        return
    try:
        auction = await visit.api.get(f"/api/v1/admin/auctions/{auction_id}")
    except ProblemError as error:
        add_notice(error.message, kind="bad", title=strings.COULD_NOT_LOAD)
        return
    with add_div("row-of apart"):
        ui.label(f"Held {fmt.format_full_moment(auction['auctionTime'])}").classes("quiet")
        with add_div("row-of"):
            again = await make_question_url(visit, auction)
            if again:
                add_link_button("Ask the same now", again, icon="replay")
            add_link_button("The auction in full", f"/console/auctions/{auction['id']}")
    show_auction(auction, visit.role)


def show_auction(auction: Json, role: Role) -> None:
    bids: list[Json] = auction["bids"]
    won = sum(bid["outcome"] == "won" for bid in bids)
    with add_card(strings.AUCTION_FUNNEL):
        build_funnel(
            list_funnel_steps(
                _count_removed(auction),
                lost=max(0, auction["bidCount"] - won),
                won=won,
                is_auction=True,
                is_contextual=auction["pageUrl"] is not None,
            ),
            description=strings.AUCTION_FUNNEL,
        )
    with add_card("Candidates", note=f"{len(bids):,}", classes="flush"):
        explained = [_name_bid(bid, auction["names"]) for bid in bids]
        build_candidate_table(explained, role=role, is_auction=True, placement_id=auction["placementId"])
    if len(bids) >= BIDS_MAX:
        add_hint("At most 256 bids of an auction are recorded one by one; the funnel counts all.")


def _name_bid(bid: Json, names: Mapping[str, str]) -> Json:
    return {
        **bid,
        "reason": explain_record(bid["removedBy"], bid["outcome"]),
        "title": names.get(bid["adId"]),
        "campaignName": names.get(bid["campaignId"]),
    }


def _count_removed(auction: Json) -> Mapping[str, int]:
    if auction["removed"]:
        return auction["removed"]
    # An account sees only its own bids.
    own = [bid["removedBy"] for bid in auction["bids"] if bid["outcome"] == "removed"]
    return Counter(name for name in own if name)


async def make_question_url(visit: PageVisit, auction: Json) -> str | None:
    """Return the address that asks for the same reader now; None if the placement is unknown."""
    if auction["placementId"] is None or auction["context"] is None:
        return None
    try:
        placement = await visit.api.get(f"/admin/placements/{auction['placementId']}")
    except ProblemError:
        return None
    context: dict[str, Any] = auction["context"]
    reader = {TO_PARAMETERS.get(name, name): value for name, value in context.items() if name not in OF_TIME}
    user = {"userId": auction["userId"]} if auction["userId"] else {}
    if auction["pageUrl"] is not None:
        return make_slot_question_url(auction["pageUrl"], placement["slug"], **user)
    return f"/console/why?{urlencode({'placement': placement['slug'], **reader, **user})}"


def make_slot_question_url(page_url: str, slug: str, **more: str) -> str:
    """Return the address that asks why a slot of a page, under its normalised URL, is filled as it is."""
    return f"/console/why?{urlencode({'placement': slug, 'url': f'https://{page_url}', **more})}"
