"""The pages of publishers: their sites, placements and settings, and the monthly statement of what they have earned."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components import format as fmt
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import Tile, add_div, add_empty_state, add_facts, add_notice
from adloom.console.components.messages import download_sheet
from adloom.console.components.status import build_account_badge, build_account_name
from adloom.console.components.table import Column, DataTable, make_number_column
from adloom.console.page import PageVisit
from adloom.console.pages.placements import PLACEMENTS
from adloom.console.pages.reports.question import paginate
from adloom.console.pages.sites.pages import SITES
from adloom.console.resource_pages import Reload, ResourcePages, Tab
from adloom.console.shell import PUBLISHER_SIDE

MONTHS: Final = 24


def list_months(today: date) -> list[str]:
    """List months that a statement can be of, newest first."""
    this = today.replace(day=1)
    months = [this]
    while len(months) < MONTHS:
        months.append((months[-1] - timedelta(days=1)).replace(day=1))
    return [f"{one:%Y-%m}" for one in months]


async def show_statement(visit: PageVisit, publisher: Json, _: Reload) -> None:
    """Show a month of a publisher."""
    months = list_months(visit.now.date())  # They are made of days of UTC.
    asked = visit.query.get("month", "")
    month = asked if asked in months else _choose_month(months, publisher)
    address = f"/admin/publishers/{publisher['id']}/statement"
    found = await visit.api.get(address, month=month)

    async def download() -> None:
        text = await visit.api.get_text(address, month=month, format="csv")
        download_sheet(text, f"adloom-statement-{month}.csv")

    with add_div("al-bar"):
        labels = {one: f"{date.fromisoformat(f'{one}-01'):%B %Y}" for one in months}
        ui.select(labels, label="Month", value=month).props(
            'outlined dense options-dense data-field="month"'
        ).on_value_change(
            lambda event: ui.navigate.to(
                f"/console/publishers/{publisher['id']}?tab=statement&month={event.value}"
            )
        )
        ui.button("Download CSV", icon="download", on_click=download).props("outline")
        ui.button("Print", icon="print", on_click=lambda: ui.run_javascript("print()")).props("outline")
    if not found["isFinal"]:
        add_notice("This month goes on: its figures still change.")
    totals = found["totals"]
    with add_div("grid-of tiles"):
        Tile("Revenue").update(
            fmt.format_money(totals["revenuePaisa"]),
            note=f"the share is {found['revenueSharePercent']}% now",
        )
        if totals["chargedPaisa"] is not None:
            Tile("Charged to advertisers").update(fmt.format_money(totals["chargedPaisa"]))
        for label, counted, invalid in (
            ("Impressions", totals["impressions"], totals["invalidImpressions"]),
            ("Clicks", totals["clicks"], totals["invalidClicks"]),
        ):
            note = f"{fmt.format_count(invalid)} of them invalid, not billed" if invalid else ""
            Tile(label).update(fmt.format_count(counted), note=note)
    if not found["items"]:
        add_empty_state("receipt_long", "Nothing was shown in this month", "Choose another month.")
        return
    await DataTable(visit.query, _list_columns(found), lambda query: _read(found, query)).show()


def _choose_month(months: list[str], publisher: Json) -> str:
    """Choose the last whole month; for somebody who is new, the month of the beginning."""
    this, last, *_ = months
    return last if publisher["createdAt"][: len(this)] < this else this


def _list_columns(found: Json) -> list[Column]:
    columns = [
        Column("Placement", lambda row: row["label"] or f"{row['slug']} (deleted)", sort="slug"),
        Column("Site", lambda row: row["site"] or strings.NONE, is_wide_only=True),
        make_number_column("Impressions", "impressions", is_sorted=True),
        make_number_column("Clicks", "clicks", is_sorted=True),
    ]
    if found["totals"]["chargedPaisa"] is not None:
        columns.append(make_number_column("Charged", "chargedPaisa", fmt.format_money, is_sorted=True))
    columns.append(make_number_column("Revenue", "revenuePaisa", fmt.format_money, is_sorted=True))
    return columns


async def _read(found: Json, query: Mapping[str, str]) -> Json:
    return paginate(found["items"], query)


async def _add_fields(_: PageVisit, form: Form, is_new: bool) -> None:  # noqa: FBT001 - as its type says
    form.add_name("name", "Name")
    form.add_integer(
        "revenueSharePercent",
        "Its share of what is charged, in percent",
        hint="It counts from the day on which you set it. Days before keep the share that they had.",
    )
    if not is_new:
        add_facts([("Account id", form.get_initial("id"))])


PUBLISHERS: Final = ResourcePages(
    noun="publisher",
    icon="groups",
    note="A publisher shows ads. It is an account that owns sites and placements.",
    empty_note="Sites and placements can be your own. Create a publisher for the pages of another company.",
    roles=PUBLISHER_SIDE,
    is_admins_only=True,
    is_compact=True,
    columns=[Column("Name", build_account_name, sort="name")],
    search="Search by name",
    fields=_add_fields,
    badge=build_account_badge,
    delete_note=(
        "Its people and keys are refused at once, and its placements are closed within two seconds. "
        "Offers that are already out still count. "
        "You can undo this: everything it owns is then back as it was."
    ),
    add=lambda publisher: ("New placement", f"{PLACEMENTS.new}?publisher={publisher['id']}"),
    tabs={
        "placements": PLACEMENTS.make_tab("publisherId"),
        "sites": SITES.make_tab("publisherId"),
        "statement": Tab("Statement", show_statement),
    },
    last_column=("Created", "createdAt"),
).register()
