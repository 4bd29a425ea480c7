"""Reports: any dimension and range, as a chart, a table and a CSV file."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json, ProblemError, fetch_names, short_id
from adloom.console.components import format as fmt
from adloom.console.components.forms.fields import day_field
from adloom.console.components.layout import Tile, card, div, empty_state, heading, notice, set_attributes
from adloom.console.components.messages import notify_success
from adloom.console.components.table import Column, DataTable
from adloom.console.page import PageVisit, page
from adloom.console.pages.reports.question import (
    FIELDS,
    OF_TIME,
    ReportFilters,
    find_period,
    list_keys,
    paginate,
    parse_query,
    report_chart,
)
from adloom.core.actor import Role

ADDRESS: Final = "/console/reports"
LISTED_MAX: Final = 100
NAMED: Final = ("campaign", "banner", "placement")
DEVICES: Final = ("desktop", "mobile", "tablet", "unknown")
# Publishers are not told what advertisers sell.
OF_ADVERTISERS: Final = ("conversions", "conversionValue")
STATISTICS: Final = "/admin/stats/banners"


@page(ADDRESS, title="Reports")
async def reports(visit: PageVisit) -> None:
    today = visit.now.date()
    question = parse_query(visit.query, today=today)
    with heading(
        "Reports",
        note="Impressions, clicks and spend, by whatever you want to know. Days and hours are those of UTC.",
    ):
        ui.button("Download CSV", icon="download", on_click=lambda: _download(visit.api, question)).props(
            "outline"
        )
    await _controls(visit, question, today)
    try:
        answer = await visit.api.get(STATISTICS, **question.query)
    except ProblemError as error:
        notice(error.message, kind="bad", title=strings.COULD_NOT_LOAD)
        return
    rows: list[Json] = answer["items"]
    if not rows:
        empty_state(
            "bar_chart",
            "Nothing was counted here",
            "Choose other days or fewer filters. Impressions are there seconds after they were seen.",
        )
        return
    _totals(answer["totals"], question)
    names = _Names(visit.api)
    await names.learn_names(list_keys(question, rows))
    with card():
        report_chart(question, rows, names.label)
    await _table(visit, question, rows, names)


async def _download(api: ApiClient, question: ReportFilters) -> None:
    text = await api.get_text(STATISTICS, **question.query, format="csv")
    name = f"adloom-{'-'.join(question.by)}-{question.first}-to-{question.last}.csv"
    ui.download.content(text, name, "text/csv")
    notify_success(strings.DOWNLOADED)


async def _controls(visit: PageVisit, question: ReportFilters, today: date) -> None:
    def ask(**changes: object) -> None:
        ui.navigate.to(f"{ADDRESS}?{question.address(**changes)}")

    def ask_period(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        if event.value:
            ask(**{"from": today - timedelta(days=int(event.value) - 1), "to": today})

    with div("al-bar"):
        ui.select(strings.PERIODS, label="Period", value=find_period(question, today=today)).props(
            "outlined dense options-dense"
        ).on_value_change(ask_period)
        day_field("from", "From", question.first, lambda day: ask(**{"from": day}))
        day_field("to", "To", question.last, lambda day: ask(to=day))
        by = ui.select(
            {one: one.capitalize() for one in FIELDS}, label="By", value=list(question.by), multiple=True
        )
        by.props('outlined dense options-dense data-field="by"').style("min-width: 12rem")
        by.on("popup-hide", lambda: ask(by=",".join(by.value)) if tuple(by.value) != question.by else None)
        metrics = {
            one: text
            for one, text in strings.METRICS.items()
            if (one != "spendPaisa" or question.has_spend)
            and (one not in OF_ADVERTISERS or visit.role is not Role.PUBLISHER)
        }
        ui.select(metrics, label="Chart of", value=question.metric).props(
            "outlined dense options-dense"
        ).on_value_change(lambda event: ask(metric=event.value))
    with div("al-bar"):
        for name, label, options in await _filters(visit):
            given = question.filters.get(name)
            known = (
                dict(options) if given is None or given in options else {**options, given: short_id(given)}
            )
            field = ui.select(known, label=label, value=given, clearable=True, with_input=True)
            set_attributes(field, data_field=name).props("outlined dense options-dense")
            field.on_value_change(lambda event, name=name: ask(**{name: event.value}))


async def _filters(visit: PageVisit) -> list[tuple[str, str, Mapping[str, str]]]:
    found: list[tuple[str, str, Mapping[str, str]]] = []
    if visit.role is not Role.PUBLISHER:
        listed = await visit.api.get_items("/admin/campaigns", pageSize=LISTED_MAX, sort="name")
        found.append(("campaignId", "Only the campaign", {one["id"]: one["name"] for one in listed}))
    if visit.role is not Role.ADVERTISER:
        listed = await visit.api.get_items("/admin/placements", pageSize=LISTED_MAX, sort="slug")
        found.append(("placementId", "Only the placement", {one["id"]: one["label"] for one in listed}))
    found.append(("country", "Only the country", {**strings.COUNTRIES, "unknown": "unknown"}))
    found.append(("device", "Only the device", {one: one for one in DEVICES}))
    return found


def _totals(totals: Json, question: ReportFilters) -> None:
    with div("grid-of tiles"):
        for name in ("impressions", "clicks"):
            invalid, unbound = totals[f"invalid{name.title()}"], totals[f"unbound{name.title()}"]
            notes = [f"{invalid:,} are not valid, and not billed"] if invalid else []
            notes += [f"{unbound:,} were reported without a token"] if unbound else []
            note = "; ".join(notes)
            Tile(strings.METRICS[name]).update(fmt.count(totals[name]), note=note)
        Tile(strings.METRICS["ctr"]).update(fmt.percent(totals["ctr"]))
        note = "" if question.has_spend else "Not known by country or device"
        Tile(strings.METRICS["spendPaisa"]).update(fmt.money(totals["spendPaisa"]), note=note)
        if totals["conversions"]:
            worth = fmt.count(totals["conversionValue"])
            Tile(strings.METRICS["conversions"]).update(
                fmt.count(totals["conversions"]), note=f"worth {worth}"
            )


class _Names:
    """The names of a report's keys; only names that are shown are fetched."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._known: dict[str, str] = {}

    async def learn_names(self, keys: Sequence[tuple[str, object]]) -> None:
        for noun in NAMED:
            ids = [
                str(key)
                for dimension, key in keys
                if dimension == noun and key and str(key) not in self._known
            ]
            if ids:
                self._known |= await fetch_names(self._api, noun, ids)

    def label(self, dimension: str, key: object) -> str:
        if key is None:
            return "no campaign" if dimension == "campaign" else "unknown"
        text = str(key)
        match dimension:
            case "hour":
                return f"{text[5:10]} {text[11:16]}"
            case "country":
                return strings.COUNTRIES.get(text, text)
            case _:
                return self._known.get(text, short_id(text)) if dimension in NAMED else text


def _cell(dimension: str, text: str) -> str | Markup:
    return Markup('<span class="nowrap">{}</span>').format(text) if dimension in OF_TIME else text


async def _table(visit: PageVisit, question: ReportFilters, rows: Sequence[Json], names: _Names) -> None:
    async def read(query: Mapping[str, str]) -> Json:
        answer = paginate(rows, query)
        await names.learn_names([(one, row[FIELDS[one]]) for row in answer["items"] for one in question.by])
        return answer

    columns = [
        Column(
            one.capitalize(),
            lambda row, one=one: _cell(one, names.label(one, row[FIELDS[one]])),
            sort=FIELDS[one] if one in {"day", "hour", "country", "device"} else "",
        )
        for one in question.by
    ]
    columns += [
        Column(strings.METRICS["impressions"], lambda row: fmt.count(row["impressions"]), sort="impressions", is_number=True),
        Column(strings.METRICS["clicks"], lambda row: fmt.count(row["clicks"]), sort="clicks", is_number=True),
        Column(strings.METRICS["ctr"], lambda row: fmt.percent(row["ctr"]), sort="ctr", is_number=True),
    ]  # fmt: skip
    if question.has_spend:
        columns.append(
            Column(strings.METRICS["spendPaisa"], lambda row: fmt.money(row["spendPaisa"]), sort="spendPaisa", is_number=True)
        )  # fmt: skip
        columns.append(
            Column("Over budget", lambda row: fmt.count(row["overBudgetClicks"]), is_number=True, is_wide_only=True)
        )  # fmt: skip
    if visit.role is not Role.PUBLISHER:
        columns += [
            Column(strings.METRICS[one], lambda row, one=one: fmt.count(row[one]), sort=one, is_number=True, is_wide_only=True)
            for one in OF_ADVERTISERS
        ]  # fmt: skip
    columns += [
        Column("Invalid", lambda row: fmt.count(row["invalidImpressions"] + row["invalidClicks"]), is_number=True, is_wide_only=True),
        Column("Without token", lambda row: fmt.count(row["unboundImpressions"] + row["unboundClicks"]), is_number=True, is_wide_only=True),
    ]  # fmt: skip
    table = DataTable(visit.query, columns, read)
    await table.show()
