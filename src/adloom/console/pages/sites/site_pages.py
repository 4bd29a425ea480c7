"""The pages of a site with their categories, and a dialog to give one by hand; one page: why its categories are what they are, and what competes for its slots."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, shorten_id
from adloom.console.components import format as fmt
from adloom.console.components.categories import (
    add_category_field,
    build_category_chips,
    build_confidence_bar,
    build_evidence_list,
    describe_category,
)
from adloom.console.components.format import format_ago, format_price
from adloom.console.components.forms import checks
from adloom.console.components.forms.form import Form, open_form_dialog
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
from adloom.console.components.messages import confirm, notify_success
from adloom.console.components.table import Column, DataTable, build_plain_table, make_number_column
from adloom.console.page import PageVisit, register_page
from adloom.console.pages.auctions.page import make_page_address
from adloom.console.pages.why.candidates import make_slot_question_url
from adloom.console.resource_pages import Reload
from adloom.console.shell import PUBLISHER_SIDE
from adloom.core.caller import Role
from adloom.pages.model import CATEGORIES_MAX
from adloom.taxonomy.iab import load_content

SOURCES: Final = {
    "crawl": "Crawl",
    "tag": "Readers' browsers",
    "api": "Text given by hand or by the API",
    "given": "Categories given by hand or by the API",
}
FRESHNESS: Final = ("Fresh or old", {"true": "Fresh", "false": "Old or not classified"})
DEMAND: Final = ("Demand", {"true": "An ad wants it", "false": "No ad wants it"})
TITLE_LENGTH_MAX: Final = 500
GIVEN_CONFIDENCE: Final = 1.0


def build_page_address(site_id: str, page_id: str) -> str:
    return f"/console/sites/{site_id}/pages/{page_id}"


def build_page_badge(page: Json) -> Markup:
    if page["failure"]:
        return build_badge("Failed", "bad")
    if page["classifiedAt"] is None:
        return build_badge("Waits", "info")
    return build_badge("Fresh", "good") if page["isFresh"] else build_badge("Old", "warn")


async def show_pages(visit: PageVisit, site: Json, _: Reload) -> None:
    topics = await visit.api.get(f"/admin/sites/{site['id']}/topics")

    with add_div("row-of apart"):
        add_hint("What each page is about decides which ads fit it.")
        buttons = add_div("row-of tight")
    table = DataTable(
        visit.query,
        [
            Column("Page", _name, sort="title"),
            Column("About", _build_topics),
            Column("State", build_page_badge, is_wide_only=True),
            Column("Language", lambda row: row["language"] or strings.NONE, is_wide_only=True),
            Column("From", lambda row: SOURCES[row["source"]], is_wide_only=True),
            Column(
                "Classified",
                lambda row: fmt.format_ago(row["classifiedAt"], now=visit.now),
                sort="classifiedAt",
                is_wide_only=True,
            ),
        ],
        lambda query: visit.api.get(f"/admin/sites/{site['id']}/pages", **query),
        href=lambda row: build_page_address(site["id"], row["id"]),
        sort="-updatedAt",
        empty=(
            "article",
            "No pages yet",
            "Start a crawl, put the tag on the site's pages once it is verified, or add a page here.",
        ),
        empty_action=("To the crawls", f"{visit.path}?tab=crawls"),
        caption="Pages",
    )
    if visit.may_write:
        with buttons:
            _show_buttons(visit, site, table.refresh)
    table.search("Search by address or title")
    table.filter("category", "About", _describe_topics(topics, visit.query.get("category")))
    table.filter("isFresh", *FRESHNESS)
    table.filter("hasCandidates", *DEMAND)
    await table.show()


def _describe_topics(topics: Json, chosen: str | None) -> dict[str, str]:
    """Return the categories that pages have, and those above them: both can be asked for."""
    pages: dict[str, int] = {}
    for one in topics["items"]:
        for category in (one["id"], *load_content().list_ancestors(one["id"])):
            pages[category] = pages.get(category, 0) + one["pages"]
    if chosen and chosen in load_content():
        pages.setdefault(chosen, 0)
    named = sorted((describe_category(category), category) for category in pages)
    return {category: f"{name} ({pages[category]:,})" for name, category in named}


def _build_topics(page: Json) -> Markup:
    if page["categories"]:
        return build_category_chips(page["categories"])
    reason = (
        "could not be read"
        if page["failure"]
        else "nothing clear"
        if page["classifiedAt"]
        else "not known yet"
    )
    return Markup('<span class="quiet small">{}</span>').format(reason)


def _name(page: Json) -> Markup:
    return Markup(
        '<div class="al-page"><div class="strong cut">{}</div><div class="quiet small cut">{}</div></div>'
    ).format(page["title"] or page["url"], page["url"])


def _show_buttons(visit: PageVisit, site: Json, refresh: Reload) -> None:
    again = ui.button("Classify again", icon="refresh", on_click=lambda: _ask_again(visit, site, refresh))
    again.props("outline")
    new = ui.button("Add a page", icon="add", on_click=lambda: _ask_page(visit, site, refresh))
    new.props("unelevated")


def _ask_again(visit: PageVisit, site: Json, refresh: Reload) -> None:
    async def go() -> None:
        answer = await visit.api.post(f"/admin/sites/{site['id']}/classify-again")
        later = answer["atNextCrawl"]
        notify_success(
            f"{answer['fromText']:,} pages are classified again"
            + (f", {later:,} at the next crawl." if later else ".")
        )
        await refresh()

    confirm(
        "Classify all pages again?",
        "Do this when the classifier has become another. A page keeps its categories until the new ones are there. "
        "Categories that were given by hand stay.",
        action="Classify again",
        on_confirm=go,
    )


def _ask_page(visit: PageVisit, site: Json, refresh: Reload) -> None:
    async def save(form: Form) -> None:
        body = form.create_body()
        chosen: list[str] = body.pop("categories", [])
        given = (
            {"categories": [{"id": one, "confidence": GIVEN_CONFIDENCE} for one in chosen]} if chosen else {}
        )
        await visit.api.post(f"/admin/sites/{site['id']}/pages", {**body, **given})
        notify_success("The page is added." if chosen else "The page is added and will be classified.")
        await refresh()

    with open_form_dialog("Add a page", "Add", save, {"url": f"https://{site['domain']}/"}) as form:
        form.add_url("url", "Address", is_required=True, hint=f"On {site['domain']}.")
        form.add_text("title", "Title", check=checks.check_at_most(TITLE_LENGTH_MAX))
        form.add_text("text", "Text", is_long=True, hint="What it says: we find out what it is about.").props(
            "autogrow"
        )
        add_category_field(
            form,
            "categories",
            "Or its categories",
            load_content(),
            hint=f"Up to {CATEGORIES_MAX}, taken as they are.",
            check=lambda value: None if len(value) <= CATEGORIES_MAX else f"must be at most {CATEGORIES_MAX}",
        )


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
