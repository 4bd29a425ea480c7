"""The pages of a site with their categories: search, filters, and a dialog to give one by hand."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components import format as fmt
from adloom.console.components.categories import add_category_field, build_category_chips, describe_category
from adloom.console.components.forms import checks
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import add_div, add_hint, build_badge
from adloom.console.components.messages import confirm, notify_success
from adloom.console.components.table import Column, DataTable
from adloom.console.page import PageVisit
from adloom.console.resource_pages import Reload
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
