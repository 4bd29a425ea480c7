"""The form of a site: every field, with what it means."""

from collections.abc import Sequence
from datetime import UTC
from typing import Any, Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.components.categories import add_category_field
from adloom.console.components.forms import checks
from adloom.console.components.forms.fields import add_owner_field
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import add_card, add_div, add_hint, add_html
from adloom.console.page import PageVisit
from adloom.core.caller import Role
from adloom.runtime.jobs.cron import Cron, CronError
from adloom.schedule.schedule import find_zone
from adloom.taxonomy.iab import load_products

HOURS: Final = 24
SHAPES: Final = {
    "": "Learned from the site's own traffic",
    "even": "The same at every hour",
    "office": "Most in office hours",
    "evening": "Most in the evening",
    "own": "Your own 24 numbers",
}
SHAPE_VALUES: Final = {
    "even": (1,) * HOURS,
    "office": (1, 1, 1, 1, 1, 2, 4, 6, 9, 10, 10, 10, 9, 9, 10, 10, 9, 8, 6, 5, 4, 3, 2, 1),
    "evening": (3, 2, 1, 1, 1, 1, 2, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 7, 8, 10, 10, 9, 7, 5),
}


async def add_site_fields(visit: PageVisit, form: Form, is_new: bool) -> None:  # noqa: FBT001 - as its type says
    with add_div("grid-of two"):
        with add_card("What it is"), add_div("stack tight"):
            form.add_text(
                "domain", "Domain", is_required=True, hint="Such as example.com.", check=checks.check_domain
            )
            form.add_text(
                "name", "Name", check=checks.check_name, hint="For you and for buyers; empty: its domain."
            )
            form.add_time_zone("timezone")
            if is_new and visit.role is not Role.PUBLISHER:
                await add_owner_field(form, visit.api, "publisher")
            form.add_flag("isSuspended", "Suspended: no page of it gets a contextual ad")
        with add_card("How its pages are read"), add_div("stack tight"):
            _add_crawl_fields(visit, form)
        with add_card("Which ads may appear"), add_div("stack tight"):
            _add_approval_fields(form)
        if is_new:
            add_hint(
                "Prices and the pace over the day begin with defaults. Change them later in its settings."
            )
            return
        with add_card("Prices"), add_div("stack tight"):
            _add_price_fields(form)
        with add_card("Over the day"), add_div("stack tight"):
            _add_pacing_fields(form)


def _add_crawl_fields(visit: PageVisit, form: Form) -> None:
    form.add_url("seedUrl", "First page", hint="Where a crawl begins. Empty: the front page of the domain.")
    field = form.add_text(
        "cronSchedule",
        "When it is crawled",
        check=_check_cron,
        hint="Five fields: minute, hour, day, month, weekday. Empty: only when you start it.",
    )
    coming = add_hint()

    def show_when() -> None:
        coming.set_text(_describe_next(visit, field.value, form.read_values().get("timezone")))

    field.on_value_change(show_when)
    show_when()
    with add_div("grid-of tiles"):
        form.add_integer("maxPages", "Pages at most", hint="1 to 10,000")
        form.add_integer("maxDepth", "Links deep", hint="0 to 5")
        form.add_integer("crawlConcurrency", "At once", hint="1 to 8 requests")
    form.add_text(
        "hostPattern",
        "Hosts",
        hint="Empty: the domain and all below it. Or a regular expression: (www|news)[.]example[.]com",
    )


def _check_cron(value: str) -> str | None:
    try:
        Cron(" ".join(value.split()))
    except CronError as error:
        return f"must be a cron expression like 0 2 * * *: {error}"
    return None


def _describe_next(visit: PageVisit, expression: str | None, zone: str | None) -> str:
    try:
        cron = Cron(" ".join((expression or "").split()))
    except CronError:
        return ""
    following = cron.find_next_after(visit.now.astimezone(find_zone(zone or "UTC") or UTC))
    return f"Next: {following:%A, %-d %B, %H:%M} in {zone or 'UTC'}."


def _add_approval_fields(form: Form) -> None:
    form.add_choice("approvalMode", "Who decides about banners", strings.APPROVAL_MODES, is_required=True)
    add_category_field(
        form,
        "adProductBlocklist",
        "Products that may not be advertised",
        load_products(),
        hint="Type a word such as gambling. A category blocks everything below it too.",
    )
    form.add_texts(
        "blockedDomains",
        "Domains to which no ad may lead",
        hint="Press Enter after each one.",
        check=checks.check_domains,
    )
    form.add_flag("acceptsFiller", "Pages without a category may show ads that fit any page")


def _add_price_fields(form: Form) -> None:
    with add_div("grid-of tiles"):
        form.add_price("floorCpm", "Floor", hint="Least for 1,000 impressions")
        form.add_price("minFloorCpm", "Lowest floor", hint="How low it may move")
    form.add_choice("floorMode", "The floor is", strings.FLOOR_MODES, is_required=True)
    form.add_choice("auctionMode", "Auctions are", strings.AUCTION_MODES, is_required=True)
    weight = form.add_price(
        "bidWeight", "Weight of the bid", hint="0.1 to 1. Less: ads that fit the page better win."
    )
    weight.prefix = None  # It is no money.


def _add_pacing_fields(form: Form) -> None:
    add_hint("Budgets are spread over the day as the traffic of the site is.")
    _add_shape_field(form, "pacing.weekdayShape", "Traffic from Monday to Friday")
    _add_shape_field(form, "pacing.weekendShape", "Traffic on Saturday and Sunday")
    form.add_integer(
        "pacing.dayDurationSeconds",
        "Length of a day in seconds",
        hint="86,400; shorter only to try things out.",
    )
    form.add_flag("pacing.warmup", "Warm up: learn the traffic first, and show nothing")


def _add_shape_field(form: Form, name: str, label: str) -> None:
    """Add a field for how much traffic each hour has: a choice of shapes, or 24 numbers, with their picture."""
    given: Sequence[float] | None = form.get_initial(name)
    known = next((key for key, values in SHAPE_VALUES.items() if given and tuple(given) == values), None)
    chosen = known or ("own" if given else "")
    select = ui.select(SHAPES, label=label, value=chosen).props("outlined dense").classes("full")
    numbers = form.add_text(
        name,
        "24 numbers, from midnight on",
        hint="In any unit: only their ratios count.",
        check=_check_shape,
        shown=format_shape(given),
    )
    form.encode(name, lambda text: parse_shape(text or "") or None)
    numbers.set_visibility(chosen == "own")
    picture = add_html("")

    def draw() -> None:
        picture.content = draw_shape(parse_shape(numbers.value or ""))

    def choose(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        if event.value != "own":
            numbers.value = format_shape(SHAPE_VALUES.get(event.value))
        numbers.set_visibility(event.value == "own")
        draw()

    select.on_value_change(choose)
    numbers.on_value_change(draw)
    draw()


def format_shape(values: Sequence[float] | None) -> str:
    return " ".join(f"{value:g}" for value in values or ())


def parse_shape(text: str) -> list[float]:
    """Read numbers between spaces or commas; where one is none, there are none."""
    try:
        return [float(part) for part in text.replace(",", " ").split()]
    except ValueError:
        return []


def _check_shape(text: str) -> str | None:
    values = parse_shape(text)
    is_shape = len(values) == HOURS and min(values) >= 0 and max(values) > 0
    return None if is_shape else "must be 24 numbers, 0 or more and not all 0"


def draw_shape(values: Sequence[float]) -> Markup:
    """Draw a bar for each hour."""
    if len(values) != HOURS or max(values) <= 0:
        return Markup("")
    bars = Markup("").join(
        Markup('<i style="height: {:.0f}%" title="{:02}:00"></i>').format(
            max(0.0, value) / max(values) * 100, hour
        )
        for hour, value in enumerate(values)
    )
    return Markup('<div class="al-hours" role="img" aria-label="Traffic by hour">{}</div>').format(bars)
