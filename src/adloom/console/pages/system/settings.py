"""What each process runs with; nothing secret is shown."""

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.components.heading import card
from adloom.console.components.notice import empty_state
from adloom.console.components.table import Column, plain_table
from adloom.console.page import Visit


async def show_settings(visit: Visit) -> None:
    """Show the settings, one column a kind of process."""
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
        Column(label="Setting", cell=lambda row: Markup('<span class="mono">{}</span>').format(row["name"])),
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

    return Column(label=process, cell=cell)
