"""What runs, on whatever machine, and what it serves."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import ago, count, duration, percent, rate
from adloom.console.components.heading import badge
from adloom.console.components.live import live
from adloom.console.components.notice import empty_state
from adloom.console.components.table import Column, plain_table
from adloom.console.components.tile import Tile
from adloom.console.page import Visit
from adloom.console.words import shell
from adloom.console.words import system as words

REFRESH_SECONDS: Final = 2.0


async def show_processes(visit: Visit) -> None:
    """List the processes, live."""
    with ui.element("div").classes("grid-of four"):
        running, catalog = Tile(words.PROCESSES_RUNNING), Tile(words.CATALOG_VERSION)
        requests, fill = Tile(words.REQUESTS_NOW), Tile(words.FILLED_SHARE)
    with ui.element("div").classes("al-card flush"):
        table = ui.html("", sanitize=False)
        nothing = ui.element("div")
        with nothing:
            empty_state("dns", words.NO_PROCESSES, words.NO_PROCESSES_NOTE)

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
    live(REFRESH_SECONDS, refresh)


def _columns(visit: Visit, catalog_version: int) -> list[Column]:
    return [
        Column(
            label=words.PROCESS, cell=lambda row: Markup('<b class="nowrap">{}</b>').format(row["process"])
        ),
        Column(label=words.HOST, cell=lambda row: row["host"], is_wide_only=True),
        Column(label=words.PID, cell=lambda row: str(row["pid"]), is_number=True, is_wide_only=True),
        Column(label=words.UPTIME, cell=lambda row: ago(row["startedAt"], now=visit.now)),
        Column(label=words.INDEX, cell=lambda row: _index(row, catalog_version)),
        Column(label=words.RATE, cell=lambda row: rate(row["requestsPerSecond"]), is_number=True),
        Column(label=words.LATENCY, cell=_latency, is_number=True, is_wide_only=True),
        Column(label=words.WAITING, cell=_waiting, is_number=True, is_wide_only=True),
    ]


def _index(row: Json, catalog_version: int) -> str | Markup:
    version = row["indexVersion"]
    if version is None:
        return shell.NONE
    if version < catalog_version:
        return badge(words.INDEX_OLD.format(version=version, catalog=catalog_version), "warn")
    return str(version)


def _latency(row: Json) -> str:
    if row["p50Seconds"] is None:
        return shell.NONE
    return words.MEDIAN_AND_MOST.format(median=duration(row["p50Seconds"]), most=duration(row["p99Seconds"]))


def _waiting(row: Json) -> str | Markup:
    if row["pending"] is None:
        return shell.NONE
    hint = words.WAITING_HINT.format(pending=count(row["pending"]), spool=count(row["spoolBytes"] or 0))
    return Markup('<span title="{}">{}</span>').format(hint, count(row["pending"]))
