"""The candidates of a decision: the funnel of steps that removed them, and a table with reasons and links."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json, fetch_names, short_id
from adloom.console.components import format as fmt
from adloom.console.components.charts.bars import FunnelStep
from adloom.console.components.layout import badge

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
    "targeting": "Its rule about {part} does not want this reader.",
    "schedule": "It was not the time of the banner ({part}).",
    "won": "It had the highest eCPM.",
    "lost": "Another ad had a higher eCPM.",
}

WON: Final = "won"
LOST: Final = "lost"
STATUS: Final = "status"
# The step of the funnel, by the name that an explanation gives a removal.
STEP_OF: Final = {
    "no_bid": "bid",
    "placement_inactive": "status",
    "placement_not_direct": "status",
    "advertiser_deleted": "status",
    "campaign_deleted": "status",
    "campaign_draft": "status",
    "campaign_paused": "status",
    "campaign_ended": "status",
    "campaign_cancelled": "status",
    "campaign_undated": "status",
    "link_inactive": "status",
    "assignment_inactive": "status",
    "site_blocked": "status",
    "rule_unreadable": "status",
    "banner_deleted": "status",
    "banner_inactive": "status",
    "campaign_dates": "dates",
    "targeting": "targeting",
    "schedule": "schedule",
    "impression_cap": "caps",
    "click_cap": "caps",
    "daily_budget": "budget",
    "total_budget": "budget",
    "advertiser_budget": "budget",
    "pacing": "budget",
    "caps_and_budgets": "budget",
    "budget_pending": "budget",
    "not_held": "budget",
    "frequency_cap": "frequency",
    "frequency_unknown": "frequency",
    "floor": "floor",
    "no_partial_render": "slots",
}
DIRECT: Final = ("status", "dates", "targeting", "schedule", "caps", "budget", "slots")
AUCTION: Final = (
    "bid", "status", "dates", "targeting", "schedule", "caps", "budget", "frequency", "floor", "won",
)  # fmt: skip
ON_BANNER: Final = ("banner_", "schedule", "frequency_")
ON_PLACEMENT: Final = ("placement_", "no_partial_render")


def find_step(removed_by: str) -> str:
    return STEP_OF.get(removed_by.partition(":")[0], STATUS)


def funnel_steps(removed: Mapping[str, int], *, lost: int, won: int, is_auction: bool) -> list[FunnelStep]:
    """Build the funnel from removals by name, and the numbers of losers and winners."""
    order = AUCTION if is_auction else DIRECT
    taken = Counter[str]()
    for name, count in removed.items():
        taken[find_step(name)] += count
    taken[order[-1]] += lost
    left = sum(taken.values()) + won
    found = [FunnelStep(label="All candidates", left=left)]
    for name in order:
        left -= taken[name]
        kind = "good" if name == order[-1] and left else ""
        found.append(
            FunnelStep(
                label=strings.FUNNEL_STEPS[name], left=left, note=strings.FUNNEL_STEP_NOTES[name], kind=kind
            )
        )
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
    sentence = REASONS.get(head, "The record does not say more.")
    return sentence.format(part=part.replace("_", " "))


KINDS: Final = {"won": "good", "lost": "warn", "removed": ""}
# The tab of the campaign's page that can change a step.
TABS: Final = {
    "dates": "settings",
    "targeting": "targeting",
    "caps": "settings",
    "budget": "settings",
    "bid": "settings",
    "floor": "settings",
}
FLOOR: Final = "floor"  # An outbid campaign changes the same fields as one under the floor.
SHOWN_MAX: Final = 200  # More rows than a person reads; the funnel counts all.


async def candidate_table(
    api: ApiClient, candidates: Sequence[Json], *, is_auction: bool, placement_id: str | None = None
) -> None:
    """Show the candidates in the order of the API: those that came furthest first."""
    rows = candidates[:SHOWN_MAX]
    campaigns = await fetch_names(api, "campaign", (one.get("campaignId") for one in rows))
    untitled = [one.get("adId") for one in rows if not one.get("title")]
    titles = await fetch_names(api, "banner", untitled)
    heads = [("Banner", ""), ("Outcome", ""), ("Why", "")]
    if is_auction:
        heads += [("eCPM", "num"), ("Bid", "num"), ("To win", "num")]
        heads += [("CTR", "num"), ("Quality", "num")]
    head = Markup("").join(
        Markup('<th scope="col" class="{}">{}</th>').format(kind, text) for text, kind in heads
    )
    body = Markup("").join(
        _row(one, campaigns, titles, is_auction=is_auction, placement_id=placement_id) for one in rows
    )
    ui.html(
        Markup(
            '<div class="al-table-scroll"><table class="al-table al-candidates"><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
        ).format(head, body),
        sanitize=False,
    )


def _row(
    one: Json,
    campaigns: Mapping[str, str],
    titles: Mapping[str, str],
    *,
    is_auction: bool,
    placement_id: str | None,
) -> Markup:
    outcome = one["outcome"]
    won = "won" if is_auction else "shown"
    label = {"won": won, "lost": "lost", "removed": "removed"}[outcome]
    cells = [
        Markup('<td class="who">{}</td>').format(_who(one, campaigns, titles)),
        Markup("<td>{}</td>").format(badge(label, KINDS[outcome])),
        Markup('<td class="al-reason">{}</td>').format(
            _reason(one, is_auction=is_auction, placement_id=placement_id)
        ),
    ]
    if is_auction:
        cells += [
            Markup('<td class="num {}" data-label="{}">{}</td>').format(kind, label, text)
            for kind, label, text in (
                ("", "eCPM", amount(one.get("ecpm"))),
                ("", "Bid", _bid(one)),
                ("strong", "To win", amount(one.get("wouldHaveToBid"), places=4)),
                ("", "CTR", fmt.percent(one.get("predictedCtr"))),
                ("", "Quality", amount(one.get("qualityScore"))),
            )
        ]
    return Markup("<tr>{}</tr>").format(Markup("").join(cells))


def _who(one: Json, campaigns: Mapping[str, str], titles: Mapping[str, str]) -> Markup:
    banner_id, campaign_id = one.get("adId"), one.get("campaignId")
    if banner_id is None or campaign_id is None:
        return Markup('<span class="quiet">{}</span>').format("another account's")
    title = one.get("title") or titles.get(banner_id, short_id(banner_id))
    return Markup(
        '<a href="/console/banners/{}">{}</a><div class="small"><a class="quiet" href="/console/campaigns/{}">{}</a></div>'
    ).format(banner_id, title, campaign_id, campaigns.get(campaign_id, short_id(campaign_id)))


def _reason(one: Json, *, is_auction: bool, placement_id: str | None) -> Markup:
    change = Markup('<div class="quiet small">{}{}</div>').format(
        one.get("change") or "", _link(one, is_auction=is_auction, placement_id=placement_id)
    )
    return Markup("<div>{}</div>{}").format(one.get("reason") or "", change)


def _link(one: Json, *, is_auction: bool, placement_id: str | None) -> Markup:
    kind = find_noun_to_change(one.get("removedBy"), one["outcome"], is_auction=is_auction)
    if kind is None or one.get("campaignId") is None:
        return Markup("")
    ids: dict[str, Any] = {
        "campaign": one.get("campaignId"),
        "banner": one.get("adId"),
        "placement": one.get("placementId") or placement_id,
    }
    # The campaign's page names the owner of the budget.
    kind = kind if ids.get(kind) else "campaign"
    tab = TABS.get(find_step(one.get("removedBy") or FLOOR)) if kind == "campaign" else None
    return Markup(' <a href="/console/{}s/{}{}">{}</a>').format(
        kind, ids[kind], f"?tab={tab}" if tab else "", strings.OPEN_LABELS[kind]
    )


def _bid(one: Json) -> str:
    bid = one.get("bid")
    return strings.NONE if bid is None else f"{amount(bid, places=4)} {(one.get('bidType') or '').upper()}"


def amount(value: float | None, *, places: int = 2) -> str:
    """Format a price with at least two decimals, and more only if they are not zero."""
    if value is None:
        return strings.NONE
    text = f"{value:,.{places}f}"
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest.rstrip('0').ljust(2, '0')}"
