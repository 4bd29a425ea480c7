"""Background jobs by queue and state, with a retry of failed ones."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components import format as fmt
from adloom.console.components.layout import (
    Tile,
    add_div,
    add_heading,
    add_view_links,
    build_badge,
    build_meter,
)
from adloom.console.components.messages import confirm, notify_success
from adloom.console.components.table import Column, DataTable, build_row_button, make_number_column
from adloom.console.page import PageVisit, refresh_every, register_page
from adloom.console.shell import ADVERTISER_SIDE
from adloom.core.caller import Role

STATES: Final = {"failed": "Failed", "waiting": "Waiting", "active": "Running", "completed": "Done"}
QUEUES: Final = {
    "banners": "Schedules and rollups",
    "stats-sync": "Stats sync",
    "site-crawls": "Crawls",
    "mail": "E-mail",
}
NAMES: Final = {
    "banner.sync_schedule_status": "Move what is due",
    "banner.rollup_stats": "Roll up a day",
    "stats.schedule": "Plan the stats sync",
    "stats.sync": "Sync statistics",
    "sites.verify": "Verify sites again",
    "site.crawl": "Crawl a site",
    "pages.classify_again": "Classify pages again",
    "pages.clean": "Remove old pages",
    "assets.clean": "Remove unused pictures",
    "reports.find_due": "Find reports that are due",
    "mail.report": "Send a report",
    "mail.link": "Send a link",
}
NOTE: Final = "Work that is done in the background: schedules, daily rollups, statistics of ad accounts, crawls, e-mail."
LEVELS: Final = {"CAMPAIGN": "Campaigns", "ADSET": "Ad sets", "AD": "Ads"}

ADDRESS: Final = "/console/jobs"
REFRESH_SECONDS: Final = 2.0
OWN: Final = "/api/ads-manager/jobs"
KINDS: Final = {"failed": "bad", "waiting": "", "active": "info", "completed": "good"}


@register_page(ADDRESS, title="Jobs", roles=ADVERTISER_SIDE)
async def show_jobs(visit: PageVisit) -> None:
    """Show the queues; an advertiser sees only the jobs of its own statistics."""
    if visit.role is Role.ADVERTISER:
        add_heading("Jobs", note=NOTE)
        await _show_own_jobs(visit)
    else:
        await _show_queues(visit)


async def _show_queues(visit: PageVisit) -> None:
    asked = visit.query.get("queue", "")
    queue = asked if asked in QUEUES else next(iter(QUEUES))
    retry_all: ui.button | None = None
    with add_heading("Jobs", note=NOTE):
        if visit.is_admin:
            retry_all = ui.button("Try all again", icon="replay", on_click=lambda: _retry_all(visit, queue))
            retry_all.props("outline")
    with add_div("grid-of two"):
        tiles = {name: Tile(label) for name, label in QUEUES.items()}

    async def update_tiles() -> None:
        for one in await visit.api.get_items("/admin/jobs"):
            if one["name"] in tiles:
                figure = f"{one['failed']} failed" if one["failed"] else "nothing has failed"
                note = "{waiting} waiting, {active} running, {delayed} for another attempt".format(**one)
                tiles[one["name"]].update(figure, note=note, kind="bad" if one["failed"] else "good")
            if retry_all is not None and one["name"] == queue:
                retry_all.set_visibility(bool(one["failed"]))

    await update_tiles()
    views = [(label, f"{ADDRESS}?queue={name}") for name, label in QUEUES.items()]
    add_view_links(views, current=f"{ADDRESS}?queue={queue}", label="Queues")

    async def read(query: Mapping[str, str]) -> Json:
        known = {name: value for name, value in query.items() if name in {"page", "pageSize", "state"}}
        return await visit.api.get(f"/admin/jobs/{queue}", **{"state": "completed", **known})

    state = visit.query.get("state") or await _choose_first_state(visit, queue)
    table = DataTable(
        {**visit.query, "state": state},
        [Column("Job", _name), *_build_common_columns(visit)],
        read,
        on_action={"retry": lambda job_id: _retry(visit, f"/admin/jobs/{queue}/{job_id}/retry", table)},
    )
    await _show_table(table, update_tiles)


async def _show_own_jobs(visit: PageVisit) -> None:
    table = DataTable(
        visit.query,
        [Column("Job", _build_own_name), *_build_common_columns(visit)],
        lambda query: visit.api.get(OWN, **query),
        on_action={"retry": lambda job_id: _retry(visit, f"{OWN}/{job_id}/retry", table)},
        sort="-createdAt",
        empty=(
            "work_history",
            "No jobs in this state",
            "Jobs that fail five times stay here until you retry them.",
        ),
    )
    await _show_table(table)


async def _retry(visit: PageVisit, path: str, table: DataTable) -> None:
    await visit.api.post(path)
    notify_success("The job is retried.")
    await table.refresh()


async def _show_table(table: DataTable, update_tiles: Callable[[], Awaitable[None]] | None = None) -> None:
    table.filter("state", "State", STATES)
    await table.show()

    async def refresh() -> None:
        if update_tiles is not None:
            await update_tiles()
        await table.show()

    refresh_every(REFRESH_SECONDS, refresh)


async def _choose_first_state(visit: PageVisit, queue: str) -> str:
    """Start with failed jobs if there are any."""
    found = {one["name"]: one for one in await visit.api.get_items("/admin/jobs")}
    return "failed" if found[queue]["failed"] else "completed"


def _build_common_columns(visit: PageVisit) -> list[Column]:
    def build_retry_button(row: Json) -> str | Markup:
        is_offered = row["state"] == "failed" and (visit.is_admin or visit.role is Role.ADVERTISER)
        return build_row_button("retry", row["id"], "Try again") if is_offered else ""

    return [
        Column("State", lambda row: build_badge(STATES[row["state"]].lower(), KINDS[row["state"]])),
        Column("Progress", _build_progress, is_wide_only=True),
        make_number_column("Attempts", "attempts", str, is_wide_only=True),
        Column("What it said", _build_error, is_wide_only=True),
        Column("Put", lambda row: fmt.format_ago(row["createdAt"], now=visit.now), is_wide_only=True),
        Column("Ended", lambda row: fmt.format_ago(row["endedAt"], now=visit.now)),
        Column("", build_retry_button),
    ]  # fmt: skip


def _name(row: Json) -> Markup:
    label = NAMES.get(row["name"], row["name"])
    return Markup(
        '<span class="strong">{}</span><div class="quiet small mono al-wide-only">{}</div>{}'
    ).format(label, row["id"], _build_error_on_phones(row))


def _build_own_name(row: Json) -> Markup:
    days = f"{row['dateFrom']} to {row['dateTo']}"
    return Markup('<span class="strong">{}</span><div class="quiet small">{}</div>{}').format(
        LEVELS.get(row["level"], row["level"]), days, _build_error_on_phones(row)
    )


def _build_progress(row: Json) -> Markup:
    share = 1.0 if row["state"] == "completed" else row["progress"]
    return build_meter(share, KINDS[row["state"]])


def _build_error_on_phones(row: Json) -> Markup:
    """Show what a job said below its name: phones have no column for it."""
    return (
        Markup('<div class="al-phone-only">{}</div>').format(_build_error(row))
        if row["error"]
        else Markup("")
    )


def _build_error(row: Json) -> Markup:
    text = " ".join((row["error"] or "").split())
    if not text:
        return Markup('<span class="quiet">{}</span>').format(strings.NONE)
    return Markup('<div class="al-reason small bad" title="{}">{}</div>').format(text, text)


async def _retry_all(visit: PageVisit, queue: str) -> None:
    async def retry() -> None:
        answer = await visit.api.post(f"/admin/jobs/{queue}/retry")
        notify_success(f"{fmt.format_quantity(answer['retried'], 'job')} retried.")

    confirm(
        "Try all failed jobs again?",
        "Each gets all its attempts again. Fix the cause of the failures first.",
        action="Try all again",
        on_confirm=retry,
    )
