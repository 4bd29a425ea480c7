"""Which processes run, what they serve, and with which settings."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.format import ago, count, duration, percent, rate
from adloom.console.components.layout import Tile, badge, card, empty_state
from adloom.console.components.table import Column, plain_table
from adloom.console.page import PageVisit, refresh_every

REFRESH_SECONDS: Final = 2.0


async def show_processes(visit: PageVisit) -> None:
    with ui.element("div").classes("grid-of four"):
        running, catalog = Tile("Processes"), Tile("Catalog version")
        requests, fill = Tile("Requests a second"), Tile("Filled, last hour")
    with ui.element("div").classes("al-card flush"):
        table = ui.html("", sanitize=False)
        nothing = ui.element("div")
        with nothing:
            empty_state("dns", strings.NO_PROCESSES, strings.NO_PROCESSES_NOTE)

    async def refresh() -> None:
        answer = await visit.api.get("/admin/system/processes")
        traffic = await visit.api.get("/admin/system/traffic")
        minutes = traffic["minutes"]
        running.update(str(len(answer["items"])))
        catalog.update(str(answer["catalogVersion"]))
        requests.update(rate(traffic["requestsPerSecond"]), values=[one["requests"] for one in minutes])
        fill.update(
            percent(traffic["fill"], places=1),
            values=[one["filled"] / one["requests"] if one["requests"] else None for one in minutes],
        )
        table.content = plain_table(_columns(visit, answer["catalogVersion"]), answer["items"])
        table.set_visibility(bool(answer["items"]))
        nothing.set_visibility(not answer["items"])

    await refresh()
    refresh_every(REFRESH_SECONDS, refresh)


def _columns(visit: PageVisit, catalog_version: int) -> list[Column]:
    return [
        Column("Process", lambda row: Markup('<b class="nowrap">{}</b>').format(row["process"])),
        Column("Machine", "host", is_wide_only=True),
        Column("PID", lambda row: str(row["pid"]), is_number=True, is_wide_only=True),
        Column("Up since", lambda row: ago(row["startedAt"], now=visit.now)),
        Column("Index", lambda row: _index(row, catalog_version)),
        Column("Requests/s", lambda row: rate(row["requestsPerSecond"]), is_number=True),
        Column("Median / 99 %", _latency, is_number=True, is_wide_only=True),
        Column("Waiting", _pending_events, is_number=True, is_wide_only=True),
    ]


def _index(row: Json, catalog_version: int) -> str | Markup:
    version = row["indexVersion"]
    if version is None:
        return strings.NONE
    if version < catalog_version:
        return badge(f"{version}, behind {catalog_version}", "warn")
    return str(version)


def _latency(row: Json) -> str:
    if row["p50Seconds"] is None:
        return strings.NONE
    return f"{duration(row['p50Seconds'])} / {duration(row['p99Seconds'])}"


def _pending_events(row: Json) -> str | Markup:
    if row["pending"] is None:
        return strings.NONE
    hint = f"{count(row['pending'])} events, {count(row['spoolBytes'] or 0)} bytes on disk"
    return Markup('<span title="{}">{}</span>').format(hint, count(row["pending"]))


async def show_settings(visit: PageVisit) -> None:
    ui.label("What each process runs with. Secrets, and addresses that carry some, are masked.").classes(
        "quiet"
    )
    answer = await visit.api.get("/admin/system/settings")
    if not answer["items"]:
        empty_state("tune", strings.NO_PROCESSES, strings.NO_PROCESSES_NOTE)
        return
    processes = {one["process"]: one["settings"] for one in answer["items"]}
    names = sorted({name for settings in processes.values() for name in settings})
    rows = [
        {"name": name} | {process: settings.get(name) for process, settings in processes.items()}
        for name in names
    ]
    columns = [
        Column("Setting", lambda row: Markup('<span class="mono">{}</span>').format(row["name"])),
        *(_column(process) for process in processes),
    ]
    with card(classes="flush"):
        ui.html(plain_table(columns, rows), sanitize=False)


def _column(process: str) -> Column:
    def cell(row: dict[str, str | None]) -> Markup:
        value = row[process]
        if value is None:
            return Markup("")
        if not value:
            return Markup('<span class="quiet">{}</span>').format("not set")
        return Markup('<span class="mono">{}</span>').format(value)

    return Column(process, cell)
