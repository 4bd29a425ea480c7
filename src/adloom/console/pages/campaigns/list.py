"""All campaigns."""

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json
from adloom.console.components.format import ago, moment, money
from adloom.console.components.forms.fields import name_of
from adloom.console.components.layout import heading, meter
from adloom.console.components.status import bid_of, campaign_badge, dates_of
from adloom.console.components.table import Column, Table
from adloom.console.page import Visit, page
from adloom.console.shell import BUYERS

HOME: Final = "/console/campaigns"
NEW: Final = f"{HOME}/new"


@page(HOME, title="Campaigns", roles=BUYERS)
async def campaigns(visit: Visit) -> None:
    """List campaigns."""
    with heading(
        "Campaigns", note="A purpose with dates, a budget and a bid; it shows its banners on placements."
    ):
        if visit.is_admin:
            ui.button("Guide me", icon="auto_awesome").props('href="/console/first-campaign" outline')
        if visit.may_write:
            ui.button("New campaign", icon="add").props(f'href="{NEW}" unelevated')
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
        Column(label="Name", cell=lambda row: row["name"], sort="name"),
        Column(label="Status", cell=campaign_badge, sort="status"),
        Column(
            label="Advertiser",
            cell=lambda row: names[row["advertiserId"]] or "The house itself",
            is_wide_only=True,
        ),
        Column(label="Dates", cell=lambda row: _dates(row, visit), sort="startsAt", is_wide_only=True),
        Column(label="Bid", cell=bid_of, is_number=True),
        Column(
            label="Daily budget",
            cell=lambda row: money(row["budgetDailyPaisa"]),
            is_number=True,
            is_wide_only=True,
        ),
        Column(
            label="Changed",
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
        empty=(
            "campaign",
            "No campaigns yet",
            "A campaign brings a banner to a placement. The guided path makes your first one in a few steps.",
        ),
        empty_action=("New campaign", NEW) if visit.may_write else None,
        caption="Campaigns",
    )
    table.search("Search by name or description")
    table.filter("status", "Status", strings.CAMPAIGN_STATUSES)
    table.filter("source", "Source", strings.SOURCES)
    table.filter("includeDeleted", "Deleted", {"true": "Show them too"})
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
