"""One page of a site: its categories and why they are what they are, and what competes for its slots."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, shorten_id
from adloom.console.components import format as fmt
from adloom.console.components.categories import build_confidence_bar, build_evidence_list, describe_category
from adloom.console.components.format import format_ago, format_price
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_empty_state,
    add_facts,
    add_heading,
    add_hint,
    add_html,
    add_notice,
    build_badge,
)
from adloom.console.components.messages import confirm
from adloom.console.components.table import Column, build_plain_table, make_number_column
from adloom.console.page import PageVisit, register_page
from adloom.console.pages.auctions.page import make_page_address
from adloom.console.pages.sites.site_pages import SOURCES, build_page_badge
from adloom.console.pages.why.candidates import make_slot_question_url
from adloom.console.shell import PUBLISHER_SIDE
from adloom.core.caller import Role

GIVEN_NOTE: Final = "Somebody gave these categories by hand. They stay until they are given again."


@register_page("/console/sites/{site_id}/pages/{page_id}", title="Page", roles=PUBLISHER_SIDE)
async def show_page(visit: PageVisit) -> None:
    site_id = visit.parts["site_id"]
    address = f"/admin/sites/{site_id}/pages/{visit.parts['page_id']}"
    site = await visit.api.get(f"/admin/sites/{site_id}")
    found = await visit.api.get(address)
    pages_tab = f"/console/sites/{site_id}?tab=pages"
    with add_heading(
        found["title"] or found["url"],
        crumbs=[("Sites", "/console/sites"), (site["name"], pages_tab)],
        badge=build_page_badge(found),
    ):
        if visit.may_write:
            ui.button("Remove", on_click=lambda: _ask_remove(visit, address, pages_tab)).props("outline")
    if found["failure"]:
        add_notice(found["failure"], kind="bad", title="It could not be read")
    with add_div("grid-of side"):
        with add_div("stack"):
            with add_card("Why these categories"):
                _show_categories(found)
            show_shortlist(visit, site_id, found)
        with add_card("At a glance"):
            _show_facts(visit, found)


def _show_categories(found: Json) -> None:
    if not found["categories"]:
        add_empty_state(
            "help_outline",
            "No category",
            "Nothing in its text was clear enough. Ads that fit any page may appear on it, if the site takes them.",
        )
        return
    if found["source"] == "given":
        add_notice(GIVEN_NOTE)
    elif found["evidence"]:
        add_hint(
            "In quotes: phrases that are typical of the category. Below each: what the page says that is like it."
        )
    with add_div("stack loose"):
        for category in found["categories"]:
            evidence = [one for one in found["evidence"] if one["category"] == category["id"]]
            with add_div("stack tight"):
                add_html(
                    Markup('<div class="row-of apart"><h3>{}</h3>{}</div>').format(
                        describe_category(category["id"]), build_confidence_bar(category["confidence"])
                    )
                )
                if evidence:
                    add_html(build_evidence_list(evidence))


def _show_facts(visit: PageVisit, found: Json) -> None:
    address = Markup('<a href="https://{}" target="_blank" rel="noopener noreferrer nofollow">{}</a>').format(
        found["url"], found["url"]
    )
    add_facts(
        [
            ("Address", address),
            ("Language", strings.LANGUAGES.get(found["language"] or "", found["language"] or strings.NONE)),
            ("Text from", SOURCES[found["source"]]),
            ("Classified", fmt.format_ago(found["classifiedAt"], now=visit.now)),
            ("Fresh until", fmt.format_ago(found["expiresAt"], now=visit.now)),
            ("Classifier", _describe_classifier(found)),
        ]
    )


def _describe_classifier(found: Json) -> str:
    return (
        " ".join(part for part in (found["classifier"], found["classifierVersion"]) if part) or strings.NONE
    )


def _ask_remove(visit: PageVisit, address: str, pages_tab: str) -> None:
    confirm(
        "Remove this page?",
        "It gets no contextual ad until a crawl, a reader's browser or you bring it back.",
        action="Remove",
        on_confirm=lambda: visit.api.delete(address),
        success="The page is removed.",
        on_success=lambda: ui.navigate.to(pages_tab),
        is_dangerous=True,
    )


STATES: Final = {"serving": ("Competes", "good"), "pending": ("Waits for approval", "info")}


def show_shortlist(visit: PageVisit, site_id: str, found: Json) -> None:
    """Show the candidates of each slot, those that may be shown first."""
    slots = found["slots"]
    with add_card("Who competes for its slots", note=_describe_age(visit, slots)):
        if not any(slot["candidates"] for slot in slots):
            add_empty_state(
                "storefront",
                "Nobody wants its slots",
                "No campaign bids on what the page is about, or the site has no contextual slot that is switched on.",
                action="To the market of the site",
                href=f"/console/sites/{site_id}?tab=market",
            )
            return
        with add_div("stack"):
            for slot in slots:
                add_html(
                    Markup('<div class="row-of apart"><h3>{}</h3>{}</div>').format(
                        slot["slot"], _build_links(visit, found, slot)
                    )
                )
                if slot["candidates"]:
                    rows = sorted(slot["candidates"], key=lambda one: one["state"] != "serving")
                    has_bids = rows[0]["maxCpm"] is not None
                    add_html(build_plain_table((*COLUMNS, BID) if has_bids else COLUMNS, rows))
                else:
                    add_hint("Nobody wants this slot.")
        if any(one["state"] == "pending" for slot in slots for one in slot["candidates"]):
            add_html(
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
    Column("State", lambda row: build_badge(*STATES[row["state"]])),
    Column("Because of", _describe_category, is_wide_only=True),
    Column("Fits", lambda row: f"{row['categoryScore']:.2f}", is_number=True, is_wide_only=True),
)
BID: Final = make_number_column("Pays at most", "maxCpm", format_price)  # Which a publisher does not see.
