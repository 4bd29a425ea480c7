"""A campaign in contextual slots: its fields, the banners that it shows there, the pages that it reaches, and what others wait for."""

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.catalog.campaign.model import CATEGORIES_MAX
from adloom.console import strings
from adloom.console.client import Json, fetch_all
from adloom.console.components.categories import add_category_field, describe_category
from adloom.console.components.format import format_count, format_price, format_quantity
from adloom.console.components.forms.fields import NEW, add_banner_field, add_new_button, find_made
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_empty_state,
    add_hint,
    add_html,
    add_tiles,
    build_badge,
    build_meter,
)
from adloom.console.components.messages import confirm
from adloom.console.components.status import build_banner_badge, build_thumbnail, format_size
from adloom.console.components.table import Column, build_plain_table, make_number_column
from adloom.console.page import PageVisit
from adloom.console.resource_pages import Reload
from adloom.taxonomy.iab import load_content, load_products

BANNERS_MAX: Final = 100
SITES_SHOWN_MAX: Final = 50
# What keeps a campaign from pages, as explanations name it: what it says, and how bad it is.
WAITS: Final = {
    "not_approved": ("wait for approval", "info"),
    "below_floor": ("are above its bid", "warn"),
    "size_mismatch": ("have slots of other sizes", "warn"),
    "no_creatives": ("need a banner", "warn"),
    "rejected": ("are on a site that rejected it", "bad"),
    "domain_blocked": ("are on a site that blocks where it leads", "bad"),
    "ad_product_blocked": ("are on a site that blocks its product", "bad"),
    "site_blocked": ("are on a site that its advertiser blocks", "bad"),
    "category_excluded": ("are about what it excludes", ""),
    "site_suspended": ("are on a site that shows no ads now", "warn"),
    "no_slots": ("have no contextual slot", "warn"),
}


async def show_contextual(visit: PageVisit, campaign: Json, reload: Reload) -> None:
    may_write = visit.may_write and not campaign["deletedAt"]
    await _show_creatives(visit, campaign, reload, may_write=may_write)
    new = find_made(visit.query)
    if new is not None and may_write:
        visit.query.pop(NEW)  # Else the page would ask again when it is built anew.
        ui.run_javascript("adloom.address('tab=contextual')")
        await _ask_banner(visit, campaign, f"/admin/campaigns/{campaign['id']}/creatives", reload, new)
    if not campaign["categories"] and not campaign["bidsOnUnmatched"]:
        add_empty_state(
            "category",
            "It wants no pages yet",
            "Choose what pages should be about: its banners can then appear in the contextual slots of any site.",
            action="Choose categories" if may_write else "",
            href=f"{visit.path}?tab=settings" if may_write else "",
        )
        return
    if campaign["excludedCategories"]:
        excluded = ", ".join(map(describe_category, campaign["excludedCategories"]))
        add_hint(f"It is on no page about {excluded}.")
    found = await visit.api.get(f"/admin/campaigns/{campaign['id']}/delivery")
    _show_reach(found)


async def _show_creatives(visit: PageVisit, campaign: Json, reload: Reload, *, may_write: bool) -> None:
    path = f"/admin/campaigns/{campaign['id']}/creatives"
    creatives = await visit.api.get_items(path, pageSize=BANNERS_MAX)
    banners = await fetch_all([visit.api.get(f"/admin/banners/{one['bannerId']}") for one in creatives])
    with add_card(
        "Banners for contextual slots", note="A banner fits slots of its size; without a size, all"
    ):
        if not banners:
            add_hint("None yet, so nothing is shown in contextual slots.")
        with add_div("al-list"):
            for banner in banners:
                _show_banner(visit, path, banner, reload, may_write=may_write)
        if may_write:
            ui.button(
                "Add a banner", icon="add", on_click=lambda: _ask_banner(visit, campaign, path, reload)
            ).props("flat")


def _show_banner(visit: PageVisit, path: str, banner: Json, reload: Reload, *, may_write: bool) -> None:
    def ask() -> None:
        confirm(
            f"Take “{banner['title']}” out of contextual slots?",
            "It is not shown there any more within a second. The banner itself stays, and so do its approvals.",
            action="Remove",
            on_confirm=lambda: visit.api.delete(f"{path}/{banner['id']}"),
            success="The banner is removed.",
            on_success=reload,
            is_dangerous=True,
        )

    with add_div("row-of"):
        add_html(
            Markup(
                '<div class="row-of"><span class="al-wide-only">{}</span><div class="grow">'
                '<a class="strong" href="/console/banners/{}">{}</a> {}<div class="quiet small">{}</div></div></div>'
            ).format(
                build_thumbnail(banner["primaryImageUrl"]),
                banner["id"],
                banner["title"],
                build_banner_badge(banner),
                format_size(banner),
            )
        ).classes("grow")
        if may_write:
            ui.button("Remove", on_click=ask).props("flat")


async def _ask_banner(
    visit: PageVisit, campaign: Json, path: str, reload: Reload, new: str | None = None
) -> None:
    async def save(form: Form) -> None:
        await visit.api.post(path, form.create_body())
        await reload()

    with open_form_dialog("Add a banner", "Add", save, {"bannerId": new}) as form:
        await add_banner_field(form, visit.api, campaign["advertiserId"])
        back = f"{visit.path}?tab=contextual"
        add_new_button("banner", back=back, advertiser=campaign["advertiserId"])


def _show_reach(found: Json) -> None:
    reach = found["contextual"]
    if reach is None:
        return
    wanted, reached, sites = add_tiles("Pages that it wants", "Reached", "Sites")
    wanted.update(format_count(reach["pages"]), note="about its categories, or what is below them")
    share = reach["reached"] / reach["pages"] if reach["pages"] else 0
    reached.update(format_count(reach["reached"]), note="where it competes now", kind="" if share else "warn")
    sites.update(format_count(len(reach["sites"])))
    if found["status"] != "active":
        add_hint("The campaign is not active. These are the pages that it would reach.")
    if not reach["sites"]:
        add_empty_state(
            "travel_explore",
            "There is no such page yet",
            "No site has a page about these categories now. Choose more, or a category above one of them.",
        )
        return
    with add_card("Where it reaches, and what the others wait for", classes="flush"):
        add_html(build_plain_table(COLUMNS, reach["sites"][:SITES_SHOWN_MAX]))
    if len(reach["sites"]) > SITES_SHOWN_MAX:
        add_hint(f"The {SITES_SHOWN_MAX} sites with most pages are shown.")


def _describe_reached(site: Json) -> Markup:
    return Markup('{}<span class="small num">{}</span>').format(
        build_meter(site["reached"] / max(1, site["pages"]), "good"),
        f"{format_count(site['reached'])} of {format_count(site['pages'])}",
    )


def describe_waits(site: Json) -> Markup:
    """Say what keeps the campaign from pages of a site, most pages first."""
    parts = sorted(site["removed"].items(), key=lambda one: -one[1])
    if not parts:
        return Markup('<span class="quiet">{}</span>').format("all reached")
    return Markup(" ").join(
        build_badge(_describe_pages(name, pages, site), WAITS.get(name, ("", ""))[1]) for name, pages in parts
    )


def _describe_pages(name: str, pages: int, site: Json) -> str:
    words = WAITS.get(name, (name.replace("_", " "), ""))[0]
    missing = (
        f" by {format_price(site['bidMissing'])}" if name == "below_floor" and site["bidMissing"] else ""
    )
    return f"{format_count(pages)} {words}{missing}"


COLUMNS: Final = (
    Column("Site", "domain"),
    make_number_column("Pages", "pages"),
    Column("Reached", _describe_reached),
    Column("The others", describe_waits),
)


async def add_contextual_fields(visit: PageVisit, form: Form) -> None:
    rates = {one["id"]: one for one in await visit.api.get_items("/admin/market/categories")}
    field = add_category_field(
        form,
        "categories",
        "Pages about",
        load_content(),
        hint="Type a word such as cooking. A category includes everything below it. Empty: no contextual slots.",
        check=_check_count,
        notes={category: describe_rate(rate) for category, rate in rates.items()},
        rank=lambda node: rates[node.id]["pages"] if node.id in rates else 0,
    )
    chosen = add_html("")

    def show() -> None:
        chosen.content = list_rates(field.value or (), rates)

    field.on_value_change(show)
    show()
    add_category_field(
        form,
        "excludedCategories",
        "Not on pages about",
        load_content(),
        hint="Type a word such as war. A page that is also about one of these, or what is below it, gets no ad of the campaign.",
        check=_check_count,
        notes={category: format_quantity(rate["pages"], "page") for category, rate in rates.items()},
    )
    form.add_flag("bidsOnUnmatched", "Also pages that are about nothing clear")
    add_category_field(
        form,
        "adProductCategory",
        "What it advertises",
        load_products(),
        is_single=True,
        hint="Sites block products by it. Type a word such as coffee.",
    )
    form.add_choice(
        "bidStrategy",
        "Bids are",
        strings.BID_STRATEGIES,
        is_required=True,
        hint="Decided every 15 minutes, never above the bid. Fleet and DQN need a target cost; all but Fixed a daily budget.",
    )
    form.add_price(
        "targetCpa", "What a conversion should cost", hint="For strategies that learn. Empty: not said."
    )


def _check_count(value: Sequence[str]) -> str | None:
    return None if len(value) <= CATEGORIES_MAX else f"must be at most {CATEGORIES_MAX}"


def describe_rate(rate: Json) -> str:
    pages = format_quantity(rate["pages"], "page")
    band = describe_band(rate)
    return f"{pages}, {band}" if band else pages


def describe_band(rate: Json) -> str:
    """Say what others bid for a thousand impressions; where few bid, nothing is said."""
    low, high = rate["lowCpm"], rate["highCpm"]
    if low is None:
        return ""
    return f"{format_price(low)} or more" if high is None else f"{format_price(low)} to {format_price(high)}"


def list_rates(chosen: Sequence[str], rates: Mapping[str, Json]) -> Markup:
    """List the chosen categories with their pages, and what goes for them."""
    nothing = {"pages": 0, "sites": 0, "lowCpm": None, "highCpm": None}
    rows = Markup("").join(
        Markup(
            '<li><span class="cut">{}</span><span class="num">{}</span><span class="quiet small">{}</span></li>'
        ).format(describe_category(category), _count_pages(rate), _describe_band(rate))
        for category in chosen
        for rate in [rates.get(category, nothing)]
    )
    return Markup('<ul class="al-shares al-rates">{}</ul>').format(rows) if rows else Markup("")


def _count_pages(rate: Json) -> str:
    pages, sites = rate["pages"], rate["sites"]
    if not pages:
        return "no pages yet"
    return f"{format_quantity(pages, 'page')} on {format_quantity(sites, 'site')}"


def _describe_band(rate: Json) -> str:
    band = describe_band(rate)
    return f"Going rate: {band} for 1,000 impressions" if band else "Going rate: too few bid to say"
