"""The processes and their settings, how far projections are behind the event log, and the events that could not be counted."""

from typing import Any, Final

from markupsafe import Markup, escape
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.format import (
    format_ago,
    format_count,
    format_duration,
    format_full_moment,
    format_percent,
    format_rate,
)
from adloom.console.components.layout import (
    Tile,
    add_card,
    add_div,
    add_empty_state,
    add_facts,
    add_html,
    build_badge,
)
from adloom.console.components.messages import confirm, notify_success
from adloom.console.components.table import (
    CLICK_HANDLER,
    Column,
    build_plain_table,
    build_row_button,
    make_number_column,
)
from adloom.console.page import PageVisit, refresh_every
from adloom.ops.checks.processes import name_longest

REFRESH_SECONDS: Final = 2.0
LAG_SECONDS_GOOD: Final = 10.0
MEGABYTE: Final = 1_000_000
NO_PROCESSES: Final = (
    "No process reports",
    "Each process reports once a second through Valkey. Check that it runs, and that its REDIS_URL is the same.",
)
DEAD_LETTERS: Final = "/admin/system/dead-letters"


async def show_processes(visit: PageVisit) -> None:
    with add_div("grid-of four"):
        running, catalog = Tile("Processes"), Tile("Catalog version")
        requests, fill = Tile("Requests a second"), Tile("Filled, last hour")
    with add_div("al-card flush"):
        table = add_html("")
        nothing = ui.element("div")
        with nothing:
            add_empty_state("dns", *NO_PROCESSES)
        nothing.set_visibility(False)

    async def refresh() -> None:
        answer = await visit.api.get("/admin/system/processes")
        traffic = await visit.api.get("/admin/system/traffic")
        minutes = traffic["minutes"]
        running.update(str(len(answer["items"])))
        catalog.update(str(answer["catalogVersion"]))
        requests.update(
            format_rate(traffic["requestsPerSecond"]), values=[one["requests"] for one in minutes]
        )
        fill.update(
            format_percent(traffic["fill"], places=1),
            values=[one["filled"] / one["requests"] if one["requests"] else None for one in minutes],
        )
        columns = _build_columns(visit, answer["catalogVersion"])
        if any(row["shards"] for row in answer["items"]):
            columns.append(Column("Shards", _describe_shards, is_number=True))
        table.content = build_plain_table(columns, answer["items"])
        table.set_visibility(bool(answer["items"]))
        nothing.set_visibility(not answer["items"])

    await refresh()
    refresh_every(REFRESH_SECONDS, refresh)


def _build_columns(visit: PageVisit, catalog_version: int) -> list[Column]:
    return [
        Column("Process", lambda row: Markup('<b class="nowrap">{}</b>').format(row["process"])),
        Column("Machine", "host", is_wide_only=True),
        make_number_column("PID", "pid", str, is_wide_only=True),
        Column("Up since", lambda row: format_ago(row["startedAt"], now=visit.now), is_wide_only=True),
        Column("Index", lambda row: _describe_index(row, catalog_version)),
        make_number_column("Requests/s", "requestsPerSecond", format_rate),
        Column("Median / 99%", _describe_latency, is_number=True, is_wide_only=True),
        Column("Waiting", _describe_pending_events, is_number=True, is_wide_only=True),
    ]


def _describe_index(row: Json, catalog_version: int) -> str | Markup:
    version = row["indexVersion"]
    if version is None:
        return strings.NONE
    if version < catalog_version:
        return build_badge(f"{version}, behind {catalog_version}", "warn")
    return str(version)


def _describe_latency(row: Json) -> str:
    if row["p50Seconds"] is None:
        return strings.NONE
    return f"{format_duration(row['p50Seconds'])} / {format_duration(row['p99Seconds'])}"


def _describe_pending_events(row: Json) -> str | Markup:
    if row["pending"] is None:
        return strings.NONE
    hint = f"{format_count(row['pending'])} events, {format_count(row['spoolBytes'] or 0)} bytes on disk"
    return Markup('<span title="{}">{}</span>').format(hint, format_count(row["pending"]))


def _describe_shards(row: Json) -> str | Markup:
    """Show what a worker has of the budget actors, and whether that needs attention."""
    shards = row["shards"]
    if shards is None:
        return strings.NONE
    if not shards["isConnected"]:
        return build_badge("no NATS", "bad")
    waiting = sum(shards["lag"].values())
    hint = (
        f"{format_count(waiting)}{name_longest(shards['lag'])} messages wait, {format_count(shards['fencedWrites'])} late"
        f" writes were refused, {format_count(shards['moves'])} shards were taken over"
    )
    shown = f"{len(shards['held'])}" + (f", {format_count(waiting)} wait" if waiting else "")
    return Markup('<span title="{}">{}</span>').format(hint, shown)


async def show_settings(visit: PageVisit) -> None:
    ui.label("What each process runs with. Secrets, and addresses that carry some, are masked.").classes(
        "quiet"
    )
    answer = await visit.api.get("/admin/system/settings")
    if not answer["items"]:
        add_empty_state("tune", *NO_PROCESSES)
        return
    processes = {one["process"]: one["settings"] for one in answer["items"]}
    names = sorted({name for settings in processes.values() for name in settings})
    rows = [
        {"name": name} | {process: settings.get(name) for process, settings in processes.items()}
        for name in names
    ]
    columns = [
        Column("Setting", lambda row: Markup('<span class="mono">{}</span>').format(row["name"])),
        *(_build_column(process) for process in processes),
    ]
    with add_card(classes="flush"):
        add_html(build_plain_table(columns, rows))


def _build_column(process: str) -> Column:
    def build_cell(row: dict[str, str | None]) -> Markup:
        value = row[process]
        if value is None:
            return Markup("")
        if not value:
            return Markup('<span class="quiet">{}</span>').format("not set")
        return Markup('<span class="mono">{}</span>').format(value)

    return Column(process, build_cell)


async def show_ledger(visit: PageVisit) -> None:
    with add_div("grid-of tiles"):
        entries, memory, dead = (
            Tile(label) for label in ("Entries in the event log", "Memory", "Dead letters")
        )
    with add_div("al-card flush"):
        table = add_html("")

    async def refresh() -> None:
        answer = await visit.api.get("/admin/system/ledger")
        entries.update(format_count(answer["entries"]))
        memory.update(f"{answer['memoryBytes'] / MEGABYTE:,.1f} MB")
        dead.update(format_count(answer["dead"]), kind="warn" if answer["dead"] else "")
        table.content = build_plain_table(COLUMNS, answer["projections"])

    await refresh()
    refresh_every(REFRESH_SECONDS, refresh)


def _describe_lag(row: Json) -> str:
    if not row["behindEntries"]:
        return build_badge("nothing", "good")
    shown = f"{format_count(row['behindEntries'])} events, {format_duration(row['behindSeconds'])}"
    return build_badge(shown, "warn" if row["behindSeconds"] > LAG_SECONDS_GOOD else "info")


COLUMNS: Final = [
    Column("Projection", "name"),
    Column("Behind", _describe_lag),
    Column("Processed by", lambda row: row["owner"] or build_badge("nobody", "bad"), is_wide_only=True),
    make_number_column("Failing", "failing"),
    make_number_column("Given up", "dead"),
]


async def show_dead_letters(visit: PageVisit) -> None:
    ui.label("Events that could not be counted. They stay here until you retry or delete them.").classes(
        "quiet"
    )
    letters = DeadLettersTab(visit)
    await letters.refresh()


class DeadLettersTab:
    """The list of dead letters, and the actions on each."""

    def __init__(self, visit: PageVisit) -> None:
        self._visit = visit
        self._shown: list[Json] = []
        self._next: str | None = None
        with add_div("al-card flush"):
            self._table = add_html("").on("click", self._on_click, js_handler=CLICK_HANDLER)
            self._nothing = ui.element("div")
            with self._nothing:
                add_empty_state(
                    "mark_email_read", "There are no dead letters", "Every accepted event was counted."
                )
        self._more = ui.button("Show more", on_click=self._read_on).props("outline")

    async def refresh(self) -> None:
        self._shown = []
        self._next = None
        await self._read_on()

    async def _read_on(self) -> None:
        answer = await self._visit.api.get(DEAD_LETTERS, after=self._next)
        self._shown += answer["items"]
        self._next = answer["next"]
        self._table.content = build_plain_table(self._build_columns(), self._shown)
        self._table.set_visibility(bool(self._shown))
        self._nothing.set_visibility(not self._shown)
        self._more.set_visibility(self._next is not None)

    def _build_columns(self) -> list[Column]:
        return [
            Column("Letter", lambda row: Markup('<span class="mono">{}</span>').format(row["id"])),
            Column("Projection", "projection"),
            Column("Given up", lambda row: format_ago(row["at"], now=self._visit.now), is_wide_only=True),
            make_number_column("Tries", "tries", str, is_wide_only=True),
            Column("Reason", "reason", is_wide_only=True),
            Column("", _build_actions, is_number=True),
        ]  # fmt: skip

    async def _on_click(self, event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        name, letter_id = event.args
        match name:
            case "show":
                await self._show(letter_id)
            case "retry":
                await self._visit.api.post(f"{DEAD_LETTERS}/{letter_id}/retry")
                notify_success("It is in the event log again. If it fails again, it comes back here.")
                await self.refresh()
            case _:
                self._ask_to_forget(letter_id)

    async def _show(self, letter_id: str) -> None:
        letter = await self._visit.api.get(f"{DEAD_LETTERS}/{letter_id}")
        with ui.dialog(value=True) as dialog, ui.card().classes("wide"):
            dialog.props('aria-label="A dead letter"')
            add_facts(
                [
                    ("Letter", letter["id"]),
                    ("Projection", letter["projection"]),
                    ("Given up", format_full_moment(letter["at"])),
                    ("Tries", str(letter["tries"])),
                    ("Reason", letter["reason"]),
                ]
            )
            add_html(f"<h2>Event</h2><pre>{escape(letter['event'])}</pre>")
            with add_div("al-actions"):
                ui.button("Close", on_click=dialog.close).props("flat")

    def _ask_to_forget(self, letter_id: str) -> None:
        confirm(
            "Delete this letter?",
            "Its event is never counted. This cannot be undone.",
            action="Delete",
            on_confirm=lambda: self._visit.api.delete(f"{DEAD_LETTERS}/{letter_id}"),
            success="The letter is deleted.",
            on_success=self.refresh,
            is_dangerous=True,
        )


def _build_actions(row: Json) -> Markup:
    names = (("show", "Show"), ("retry", "Try again"), ("forget", "Delete"))
    return Markup(" ").join(build_row_button(name, row["id"], label) for name, label in names)
