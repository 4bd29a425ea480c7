"""The candidates of a decision as a table: each with its reason and a link to what can be changed."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json
from adloom.console.components import format as shown
from adloom.console.components.heading import badge
from adloom.console.names import names_of, short
from adloom.console.pages.why.steps import place_to_change, step_of

KINDS: Final = {"won": "good", "lost": "warn", "removed": ""}
# Which part of the campaign's page changes a step.
TABS: Final = {
    "dates": "settings",
    "targeting": "targeting",
    "caps": "settings",
    "budget": "settings",
    "bid": "settings",
    "floor": "settings",
}
FLOOR: Final = "floor"  # Who is outbid changes what who is under the floor changes.
SHOWN_MAX: Final = 200  # Rows that a person looks through; the funnel counts all.


async def candidate_table(
    api: ApiClient, candidates: Sequence[Json], *, is_auction: bool, placement_id: str | None = None
) -> None:
    """Show who came how far; those who came furthest stand first, as the API gives them."""
    rows = candidates[:SHOWN_MAX]
    campaigns = await names_of(api, "campaign", (one.get("campaignId") for one in rows))
    untitled = [one.get("adId") for one in rows if not one.get("title")]
    titles = await names_of(api, "banner", untitled)
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
                ("", "CTR", shown.percent(one.get("predictedCtr"))),
                ("", "Quality", amount(one.get("qualityScore"))),
            )
        ]
    return Markup("<tr>{}</tr>").format(Markup("").join(cells))


def _who(one: Json, campaigns: Mapping[str, str], titles: Mapping[str, str]) -> Markup:
    banner_id, campaign_id = one.get("adId"), one.get("campaignId")
    if banner_id is None or campaign_id is None:
        return Markup('<span class="quiet">{}</span>').format("somebody else's")
    title = one.get("title") or titles.get(banner_id, short(banner_id))
    return Markup(
        '<a href="/console/banners/{}">{}</a><div class="small"><a class="quiet" href="/console/campaigns/{}">{}</a></div>'
    ).format(banner_id, title, campaign_id, campaigns.get(campaign_id, short(campaign_id)))


def _reason(one: Json, *, is_auction: bool, placement_id: str | None) -> Markup:
    change = Markup('<div class="quiet small">{}{}</div>').format(
        one.get("change") or "", _link(one, is_auction=is_auction, placement_id=placement_id)
    )
    return Markup("<div>{}</div>{}").format(one.get("reason") or "", change)


def _link(one: Json, *, is_auction: bool, placement_id: str | None) -> Markup:
    kind = place_to_change(one.get("removedBy"), one["outcome"], is_auction=is_auction)
    if kind is None or one.get("campaignId") is None:
        return Markup("")
    ids: dict[str, Any] = {
        "campaign": one.get("campaignId"),
        "banner": one.get("adId"),
        "placement": one.get("placementId") or placement_id,
    }
    # Whose budget it is stands on the campaign's page.
    kind = kind if ids.get(kind) else "campaign"
    tab = TABS.get(step_of(one.get("removedBy") or FLOOR)) if kind == "campaign" else None
    return Markup(' <a href="/console/{}s/{}{}">{}</a>').format(
        kind, ids[kind], f"?tab={tab}" if tab else "", strings.OPEN_LABELS[kind]
    )


def _bid(one: Json) -> str:
    bid = one.get("bid")
    return strings.NONE if bid is None else f"{amount(bid, places=4)} {(one.get('bidType') or '').upper()}"


def amount(value: float | None, *, places: int = 2) -> str:
    """Show a price with at least two places, and with more only where they say something."""
    if value is None:
        return strings.NONE
    text = f"{value:,.{places}f}"
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest.rstrip('0').ljust(2, '0')}"
