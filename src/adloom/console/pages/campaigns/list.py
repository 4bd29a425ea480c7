"""All campaigns."""

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import ApiClient, Json
from adloom.console.components.chooser import name_of
from adloom.console.components.format import ago, moment, money
from adloom.console.components.heading import heading, meter
from adloom.console.components.status import bid_of, campaign_badge, dates_of
from adloom.console.components.table import Column, Table
from adloom.console.navigation import BUYERS
from adloom.console.page import Visit, page
from adloom.console.words import campaigns as words
from adloom.console.words import catalog as shared

HOME: Final = "/console/campaigns"
NEW: Final = f"{HOME}/new"


@page(HOME, title=words.CAMPAIGNS, roles=BUYERS)
async def campaigns(visit: Visit) -> None:
    """List campaigns."""
    with heading(words.CAMPAIGNS, note=words.NOTE):
        if visit.is_admin:
            ui.button(words.GUIDE, icon="auto_awesome").props('href="/console/first-campaign" outline')
        if visit.may_write:
            ui.button(words.NEW, icon="add").props(f'href="{NEW}" unelevated')
    await campaign_table(visit).show()


def campaign_table(visit: Visit, *, advertiser_id: str | None = None) -> Table:
    """Make a table of campaigns, of all or of an advertiser."""
    names: dict[str | None, str] = {None: ""}

    async def read(query: Mapping[str, str]) -> Json:
        answer = await visit.api.get("/admin/campaigns", advertiserId=advertiser_id, **query)
        if advertiser_id is None:
            await _learn_names(visit.api, answer, names)
        return answer

    columns = [
        Column(label=shared.NAME, cell=lambda row: row["name"], sort="name"),
        Column(label=shared.STATUS, cell=campaign_badge, sort="status"),
        Column(
            label=shared.ADVERTISER,
            cell=lambda row: names[row["advertiserId"]] or shared.THE_HOUSE,
            is_wide_only=True,
        ),
        Column(label=words.DATES, cell=lambda row: _dates(row, visit), sort="startsAt", is_wide_only=True),
        Column(label=words.BID, cell=bid_of, is_number=True),
        Column(
            label=words.DAILY_BUDGET,
            cell=lambda row: money(row["budgetDailyPaisa"]),
            is_number=True,
            is_wide_only=True,
        ),
        Column(
            label=shared.CHANGED,
            cell=lambda row: ago(row["updatedAt"], now=visit.now),
            sort="updatedAt",
            is_wide_only=True,
        ),
    ]
    if advertiser_id is not None:
        del columns[2]
    table = Table(
        visit.query,
        columns,
        read,
        href=lambda row: f"{HOME}/{row['id']}",
        sort="-createdAt",
        empty=("campaign", words.EMPTY, words.EMPTY_NOTE),
        empty_action=(words.NEW, NEW) if visit.may_write else None,
        caption=words.CAMPAIGNS,
    )
    table.search(words.SEARCH)
    table.filter("status", shared.STATUS, words.STATUSES)
    table.filter("source", shared.SOURCE, shared.SOURCES)
    table.filter("includeDeleted", shared.SHOW_DELETED, {"true": shared.WITH_DELETED})
    return table


def _dates(row: Json, visit: Visit) -> str | Markup:
    """Show the dates, and how much of the time between them is over."""
    starts_at, ends_at = moment(row["startsAt"]), moment(row["endsAt"])
    if starts_at is None or ends_at is None:
        return dates_of(row)
    share = (visit.now - starts_at) / (ends_at - starts_at)
    return Markup('<div class="al-flight">{}{}</div>').format(dates_of(row), meter(share))


async def _learn_names(api: ApiClient, answer: Json, names: dict[str | None, str]) -> None:
    for advertiser_id in {row["advertiserId"] for row in answer["items"]} - names.keys():
        names[advertiser_id] = await name_of(api, "/admin/advertisers", advertiser_id)
