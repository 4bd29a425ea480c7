"""What competes for the slots of a page: the shortlist that its auctions have made."""

from typing import Final

from markupsafe import Markup

from adloom.console import strings
from adloom.console.client import Json, shorten_id
from adloom.console.components.categories import describe_category
from adloom.console.components.format import format_ago, format_price
from adloom.console.components.layout import badge, card, div, empty_state, hint, html
from adloom.console.components.table import Column, build_plain_table, number_column
from adloom.console.page import PageVisit
from adloom.console.pages.auctions.page import make_page_address
from adloom.console.pages.why.candidates import make_slot_question_url
from adloom.core.caller import Role

STATES: Final = {"serving": ("Competes", "good"), "pending": ("Waits for approval", "info")}


def show_shortlist(visit: PageVisit, site_id: str, found: Json) -> None:
    """Show the candidates of each slot, those that may be shown first."""
    slots = found["slots"]
    with card("Who competes for its slots", note=_describe_age(visit, slots)):
        if not any(slot["candidates"] for slot in slots):
            empty_state(
                "storefront",
                "Nobody wants its slots",
                "No campaign bids on what the page is about, or the site has no contextual slot that is switched on.",
                action="To the market of the site",
                href=f"/console/sites/{site_id}?tab=market",
            )
            return
        with div("stack"):
            for slot in slots:
                html(
                    Markup('<div class="row-of apart"><h3>{}</h3>{}</div>').format(
                        slot["slot"], _build_links(visit, found, slot)
                    )
                )
                if slot["candidates"]:
                    rows = sorted(slot["candidates"], key=lambda one: one["state"] != "serving")
                    html(build_plain_table(COLUMNS, rows))
                else:
                    hint("Nobody wants this slot.")
        if any(one["state"] == "pending" for slot in slots for one in slot["candidates"]):
            html(
                Markup('<a href="/console/sites/{}?tab=approvals">{}</a>').format(
                    site_id, "Decide about those that wait"
                )
            )


def _build_links(visit: PageVisit, found: Json, slot: Json) -> Markup:
    """Link to the explanation, and to the auctions on record; a publisher does not see who bids."""
    why = Markup('<a href="{}">Why?</a>').format(make_slot_question_url(found["url"], slot["slot"]))
    if visit.role is Role.PUBLISHER:
        return why
    records = Markup('<a href="{}">Auctions on record</a>').format(
        make_page_address(found["url"], slot["slot"])
    )
    return why + Markup(" · ") + records


def _describe_age(visit: PageVisit, slots: list[Json]) -> str:
    return format_ago(slots[0]["updatedAt"], now=visit.now).striptags() if slots else ""


def _build_ad(row: Json) -> Markup:
    return Markup('<div class="strong">{}</div><div class="quiet small">{}</div>').format(
        row["bannerTitle"] or shorten_id(row["bannerId"]),
        f"{row['campaignName'] or shorten_id(row['campaignId'])} · {row['advertiserName'] or strings.THE_HOUSE}",
    )


def _describe_category(row: Json) -> str:
    return describe_category(row["category"]) if row["category"] else "fits any page"


COLUMNS: Final = (
    Column("Ad", _build_ad),
    Column("State", lambda row: badge(*STATES[row["state"]])),
    Column("Because of", _describe_category, is_wide_only=True),
    Column("Fits", lambda row: f"{row['categoryScore']:.2f}", is_number=True, is_wide_only=True),
    number_column("Pays at most", "maxCpm", format_price),
)
