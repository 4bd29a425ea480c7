"""The fields of a campaign for contextual slots: which pages it wants, and what they go for."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from adloom.catalog.campaign.model import CATEGORIES_MAX
from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.categories import add_category_field, describe_category
from adloom.console.components.format import count_of, format_price
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import html
from adloom.console.page import PageVisit
from adloom.taxonomy.iab import load_content, load_products


async def add_contextual_fields(visit: PageVisit, form: Form) -> None:
    rates = {one["id"]: one for one in await visit.api.get_items("/admin/market/categories")}
    field = add_category_field(
        form,
        "categories",
        "Pages about",
        load_content(),
        hint="Type a word such as cooking. A category includes everything below it. Empty: no contextual slots.",
        check=lambda value: None if len(value) <= CATEGORIES_MAX else f"must be at most {CATEGORIES_MAX}",
        notes={category: describe_rate(rate) for category, rate in rates.items()},
        rank=lambda node: rates[node.id]["pages"] if node.id in rates else 0,
    )
    chosen = html("")

    def show() -> None:
        chosen.content = list_rates(field.value or (), rates)

    field.on_value_change(show)
    show()
    form.flag("bidsOnUnmatched", "Also pages that are about nothing clear")
    add_category_field(
        form,
        "adProductCategory",
        "What it advertises",
        load_products(),
        is_single=True,
        hint="Sites block products by it. Type a word such as coffee.",
    )
    form.choice(
        "bidStrategy",
        "Bids are",
        strings.BID_STRATEGIES,
        is_required=True,
        hint="Decided every 15 minutes, never above the bid. Fleet and DQN need a target cost; all but Fixed a daily budget.",
    )
    form.price(
        "targetCpa", "What a conversion should cost", hint="For strategies that learn. Empty: not said."
    )


def describe_rate(rate: Json) -> str:
    pages = count_of(rate["pages"], "page")
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
    return f"{count_of(pages, 'page')} on {count_of(sites, 'site')}"


def _describe_band(rate: Json) -> str:
    band = describe_band(rate)
    return f"Going rate: {band} for 1,000 impressions" if band else "Going rate: too few bid to say"
