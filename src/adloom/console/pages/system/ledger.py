"""How far the ledger was counted, projection by projection."""

from typing import Final

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import count, duration
from adloom.console.components.heading import badge
from adloom.console.components.live import live
from adloom.console.components.table import Column, plain_table
from adloom.console.components.tile import Tile
from adloom.console.page import Visit

REFRESH_SECONDS: Final = 2.0
LAG_SECONDS_GOOD: Final = 10.0
MEGABYTE: Final = 1_000_000


async def show_ledger(visit: Visit) -> None:
    """Show the ledger, live."""
    with ui.element("div").classes("grid-of tiles"):
        entries, memory, dead = (Tile(label) for label in ("Entries in the ledger", "Memory", "Dead letters"))
    with ui.element("div").classes("al-card flush"):
        table = ui.html("", sanitize=False)

    async def refresh() -> None:
        answer = await visit.api.get("/admin/system/ledger")
        entries.update(count(answer["entries"]))
        memory.update(f"{answer['memoryBytes'] / MEGABYTE:,.1f} MB")
        dead.update(count(answer["dead"]), kind="warn" if answer["dead"] else "")
        table.content = plain_table(COLUMNS, answer["projections"])

    await refresh()
    live(REFRESH_SECONDS, refresh)


def _behind(row: Json) -> str:
    if not row["behindEntries"]:
        return badge("nothing", "good")
    shown = f"{count(row['behindEntries'])} events, {duration(row['behindSeconds'])}"
    return badge(shown, "warn" if row["behindSeconds"] > LAG_SECONDS_GOOD else "info")


COLUMNS: Final = [
    Column(label="Projection", cell=lambda row: row["name"]),
    Column(label="Behind", cell=_behind),
    Column(
        label="Folded by",
        cell=lambda row: row["owner"] or badge("nobody", "bad"),
        is_wide_only=True,
    ),
    Column(label="Failing", cell=lambda row: count(row["failing"]), is_number=True),
    Column(label="Given up", cell=lambda row: count(row["dead"]), is_number=True),
]
