"""Reports: any dimension and range, as a chart, a table and a CSV file."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Final

import msgspec
from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json, ProblemError, parse_id, shorten_id
from adloom.console.components import format as fmt
from adloom.console.components.forms.fields import add_day_field, add_picker
from adloom.console.components.forms.inputs import LongSelect
from adloom.console.components.forms.values import offer_zone
from adloom.console.components.layout import (
    Tile,
    add_card,
    add_div,
    add_empty_state,
    add_heading,
    add_notice,
    set_attributes,
)
from adloom.console.components.messages import download_sheet
from adloom.console.components.table import Column, DataTable, make_number_column
from adloom.console.page import PageVisit, register_page
from adloom.console.pages.reports.question import (
    ADDRESS,
    COLUMNS,
    FIELDS,
    OF_TIME,
    ReportFilters,
    add_period_field,
    build_report_chart,
    describe_change,
    open_saved,
    paginate,
    parse_query,
)
from adloom.console.pages.reports.saved import SAVED, add_buttons, show_saved
from adloom.console.shell import STAFF
from adloom.console.words.field_labels import DEVICE_NAMES
from adloom.core.caller import Role
from adloom.schedule.schedule import find_zone

# The field with the name of each key.
NAMED: Final = {
    "campaign": "campaignName",
    "banner": "bannerTitle",
    "placement": "placementLabel",
    "advertiser": "advertiserName",
    "publisher": "publisherName",
    "site": "siteName",
}
WORDS: Final = {"country": strings.COUNTRIES, "device": DEVICE_NAMES, "delivery": strings.DELIVERIES}
WITHOUT: Final = {
    "campaign": "no campaign",
    "advertiser": "the house",
    "publisher": "the house",
    "site": "no site",
    "delivery": "deleted placements",
}
# Publishers are not told what advertisers sell.
OF_ADVERTISERS: Final = ("conversions", "conversionValue")
STATISTICS: Final = "/admin/stats/banners"


@register_page(ADDRESS, title="Reports")
async def show_reports(visit: PageVisit) -> None:
    saved_id, zone = parse_id(visit.query.get("report", "")), visit.choose_zone(None)
    saved = await visit.api.get(f"{SAVED}/{saved_id}") if saved_id else None
    question = (
        parse_query(visit.query, today=visit.today, zone=zone)
        if saved is None
        else open_saved(saved, now=visit.now, zone=zone)
    )
    question = msgspec.structs.replace(question, is_of_publisher=visit.role is Role.PUBLISHER)
    today = visit.now.astimezone(find_zone(question.zone)).date()
    heading = add_heading(
        saved["name"] if saved else "Reports",
        note=f"Impressions, clicks and {question.get_label('spend').lower()}, by whatever you want to know. Days and hours are those of {question.zone}.",
    )
    await show_saved(visit, saved)
    by = await _show_controls(visit, question, today)
    with heading:
        add_buttons(visit, question, saved, by)
        ui.button(
            "Download CSV", icon="download", on_click=lambda: _download(visit.api, question, saved, by)
        ).props("outline")
    try:
        answer = await visit.api.get(STATISTICS, **question.query)
        earlier = await visit.api.get(STATISTICS, **question.before.query) if question.is_compared else None
    except ProblemError as error:
        add_notice(error.message, kind="bad", title=strings.COULD_NOT_LOAD)
        return
    rows: list[Json] = answer["items"]
    if not rows:
        add_empty_state(
            "bar_chart",
            "Nothing was counted here",
            "Choose other days or fewer filters. Impressions are there seconds after they were seen.",
        )
        return
    _show_totals(answer["totals"], question, earlier and earlier["totals"], is_staff=visit.role in STAFF)
    names = _Names(rows, question.zone)
    with add_card():
        build_report_chart(
            question, rows, names.write_label, now=visit.now, earlier=earlier["items"] if earlier else ()
        )
    await _show_table(visit, question, rows, names)


async def _download(api: ApiClient, question: ReportFilters, saved: Json | None, by: ui.select) -> None:
    shown, question = question, question.split_by(by.value)
    if saved is None or question != shown:
        text = await api.get_text(STATISTICS, **question.query, format="csv")
    else:
        text = await api.get_text(f"{SAVED}/{saved['id']}/statistics", format="csv")
    name = f"adloom-{'-'.join(question.by)}-{question.first}-to-{question.last}.csv"
    download_sheet(text, name)


async def _show_controls(visit: PageVisit, question: ReportFilters, today: date) -> ui.select:
    """Show the fields of the question, and return that of its dimensions: its list may be open with others chosen."""

    def ask(**changes: object) -> None:
        ui.navigate.to(f"{ADDRESS}?{question.build_address(**changes)}")

    with add_div("al-bar al-brief"):
        add_period_field((question.first, question.last), today, lambda days: ask(**days))
        by = ui.select(
            {one: one.capitalize() for one in FIELDS}, label="By", value=list(question.by), multiple=True
        )
        by.props('outlined dense options-dense data-field="by"').style("min-width: 12rem")
        by.on("popup-hide", lambda: ask(by=",".join(by.value)) if tuple(by.value) != question.by else None)
        more = _add_more_button(question, visit.choose_zone(None))
        rare = add_div("al-rare").props('id="more-controls"')
    more.on_click(lambda: _toggle(more, rare))
    with rare:
        add_day_field("from", "From", question.first, lambda day: ask(**{"from": day}))
        add_day_field("to", "To", question.last, lambda day: ask(to=day))
        metrics = {
            one: question.get_label(one)
            for one in strings.METRICS
            if (one != "spendPaisa" or question.has_spend)
            and (one not in OF_ADVERTISERS or visit.role is not Role.PUBLISHER)
        }
        ui.select(metrics, label="Chart of", value=question.metric).props(
            "outlined dense options-dense"
        ).on_value_change(lambda event: ask(metric=event.value))
        ui.checkbox("Compare with the period before", value=question.is_compared).props(
            'dense data-field="compare"'
        ).on_value_change(lambda event: ask(compare="1" if event.value else None))
        LongSelect(offer_zone(question.zone), label="Days of", value=question.zone, with_input=True).props(
            'outlined dense options-dense data-field="zone"'
        ).on_value_change(lambda event: ask(zone=event.value))
        for name, field in (await _add_filters(visit, question)).items():
            set_attributes(field, data_field=name).props("outlined dense options-dense")
            field.on_value_change(lambda event, name=name: ask(**{name: event.value}))
    return by


def _add_more_button(question: ReportFilters, zone: str) -> ui.button:
    """Add the button that shows the rarer controls on a phone; it says how many of them are set."""
    used = len(question.filters) + question.is_compared + (question.zone != zone)
    button = ui.button(f"More ({used})" if used else "More", icon="tune").props("outline").classes("al-more")
    return set_attributes(button, aria_expanded="false", aria_controls="more-controls")


def _toggle(more: ui.button, rare: ui.element) -> None:
    is_open = "is-open" not in rare.classes
    rare.classes(toggle="is-open")
    set_attributes(more, aria_expanded=str(is_open).lower()).update()


async def _add_filters(visit: PageVisit, question: ReportFilters) -> dict[str, ui.select]:
    """Add the filters that a role may use; campaigns and placements are searched by name."""
    given = question.filters
    found: dict[str, ui.select] = {}
    nouns = [
        ("campaignId", "Only the campaign", "/admin/campaigns", Role.PUBLISHER),
        ("placementId", "Only the placement", "/admin/placements", Role.ADVERTISER),
    ]
    for name, label, path, stranger in nouns:
        if visit.role is not stranger:
            found[name] = await add_picker(
                label, given.get(name), api=visit.api, path=path, is_clearable=True, sort="createdAt"
            )
    choices: tuple[tuple[str, str, Mapping[str, str]], ...] = (
        ("country", "Only the country", {**strings.COUNTRIES, "unknown": "unknown"}),
        ("device", "Only the device", {**DEVICE_NAMES, "unknown": "unknown"}),
    )
    for name, label, options in choices:
        value = given.get(name)
        known = dict(options) if value is None or value in options else {**options, value: value}
        found[name] = LongSelect(known, label=label, value=value, clearable=True, with_input=True)
    return found


def _show_totals(totals: Json, question: ReportFilters, earlier: Json | None, *, is_staff: bool) -> None:
    def compare(metric: str) -> list[str]:
        return [] if earlier is None else [describe_change(totals[metric], earlier[metric], question.before)]

    # Only for staff they are among those that are counted.
    without_token = (
        "were reported without a token" if is_staff else "more came without a token, and do not count"
    )
    with add_div("grid-of tiles"):
        for name in ("impressions", "clicks"):
            invalid, unbound = totals[f"invalid{name.title()}"], totals[f"unbound{name.title()}"]
            notes = [f"{invalid:,} are not valid, and not billed"] if invalid else []
            notes += [f"{unbound:,} {without_token}"] if unbound else []
            note = "; ".join(compare(name) + notes)
            Tile(strings.METRICS[name]).update(fmt.format_count(totals[name]), note=note)
        Tile(strings.METRICS["ctr"]).update(fmt.format_percent(totals["ctr"]), note="; ".join(compare("ctr")))
        note = "; ".join(compare("spendPaisa")) if question.has_spend else "Not known by country or device"
        Tile(question.get_label("spendPaisa")).update(fmt.format_money(totals["spendPaisa"]), note=note)
        if totals["conversions"]:
            worth = fmt.format_count(totals["conversionValue"])
            Tile(strings.METRICS["conversions"]).update(
                fmt.format_count(totals["conversions"]), note=f"worth {worth}"
            )


class _Names:
    """The names of a report's keys, as its rows have them."""

    def __init__(self, rows: Sequence[Json], zone: str) -> None:
        self._zone = find_zone(zone)
        fields = [(FIELDS[one], title) for one, title in NAMED.items() if rows and title in rows[0]]
        self._known = {row[key]: row[title] for row in rows for key, title in fields if row[title]}

    def write_label(self, dimension: str, key: object) -> str:
        if key is None:
            return WITHOUT.get(dimension, "unknown")
        text = str(key)
        match dimension:
            case "hour":
                return f"{datetime.fromisoformat(text).astimezone(self._zone):%m-%d %H:%M}"
            case "week":
                return f"week of {text}"
            case "month":
                return text[:7]
            case "country" | "device" | "delivery":
                return WORDS[dimension].get(text, text)
            case _:
                return self._known.get(text, shorten_id(text)) if dimension in NAMED else text


def _build_cell(dimension: str, text: str) -> str | Markup:
    return Markup('<span class="nowrap">{}</span>').format(text) if dimension in OF_TIME else text


async def _show_table(visit: PageVisit, question: ReportFilters, rows: Sequence[Json], names: _Names) -> None:
    async def read(query: Mapping[str, str]) -> Json:
        return paginate(rows, query)

    columns = [
        Column(
            one.capitalize(),
            lambda row, one=one: _build_cell(one, names.write_label(one, row[FIELDS[one]])),
            sort=FIELDS[one] if one in {*OF_TIME, "delivery", "country", "device"} else "",
        )
        for one in question.by
    ]
    figures = {
        "impressions": make_number_column(COLUMNS["impressions"], "impressions", is_sorted=True),
        "clicks": make_number_column(COLUMNS["clicks"], "clicks", is_sorted=True),
        "ctr": make_number_column(COLUMNS["ctr"], "ctr", fmt.format_percent, is_sorted=True),
    }
    if question.has_spend:
        figures["spend"] = make_number_column(
            question.get_label("spend"), "spendPaisa", fmt.format_money, is_sorted=True
        )
        figures["overBudgetClicks"] = make_number_column(
            COLUMNS["overBudgetClicks"], "overBudgetClicks", is_wide_only=True
        )
    if visit.role is not Role.PUBLISHER:
        figures |= {
            one: make_number_column(COLUMNS[one], one, is_sorted=True, is_wide_only=True)
            for one in OF_ADVERTISERS
        }
    figures |= {
        one: Column(
            COLUMNS[one],
            lambda row, one=one: fmt.format_count(row[f"{one}Impressions"] + row[f"{one}Clicks"]),
            is_number=True,
            is_wide_only=True,
        )
        for one in ("invalid", "unbound")
    }
    wanted = question.columns or figures
    columns += [column for name, column in figures.items() if name in wanted]
    table = DataTable(visit.query, columns, read)
    await table.show()
