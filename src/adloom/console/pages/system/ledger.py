"""How far each projection is behind the event log, and the events that could not be counted."""

from typing import Any, Final

from markupsafe import Markup, escape
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import ago, count, duration, full_moment
from adloom.console.components.layout import Tile, badge, empty_state, facts
from adloom.console.components.messages import confirm, notify_success
from adloom.console.components.table import CLICK_HANDLER, Column, plain_table, row_button
from adloom.console.page import PageVisit, refresh_every

REFRESH_SECONDS: Final = 2.0
LAG_SECONDS_GOOD: Final = 10.0
MEGABYTE: Final = 1_000_000


async def show_ledger(visit: PageVisit) -> None:
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
    refresh_every(REFRESH_SECONDS, refresh)


def _behind(row: Json) -> str:
    if not row["behindEntries"]:
        return badge("nothing", "good")
    shown = f"{count(row['behindEntries'])} events, {duration(row['behindSeconds'])}"
    return badge(shown, "warn" if row["behindSeconds"] > LAG_SECONDS_GOOD else "info")


COLUMNS: Final = [
    Column("Projection", "name"),
    Column("Behind", _behind),
    Column("Processed by", lambda row: row["owner"] or badge("nobody", "bad"), is_wide_only=True),
    Column("Failing", lambda row: count(row["failing"]), is_number=True),
    Column("Given up", lambda row: count(row["dead"]), is_number=True),
]


PATH = "/admin/system/dead-letters"


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
        with ui.element("div").classes("al-card flush"):
            self._table = ui.html("", sanitize=False).on("click", self._on_click, js_handler=CLICK_HANDLER)
            self._nothing = ui.element("div")
            with self._nothing:
                empty_state(
                    "mark_email_read", "There are no dead letters", "Every accepted event was counted."
                )
        self._more = ui.button("Show more", on_click=self._read_on).props("outline")

    async def refresh(self) -> None:
        self._shown = []
        self._next = None
        await self._read_on()

    async def _read_on(self) -> None:
        answer = await self._visit.api.get(PATH, after=self._next)
        self._shown += answer["items"]
        self._next = answer["next"]
        self._table.content = plain_table(self._columns(), self._shown)
        self._table.set_visibility(bool(self._shown))
        self._nothing.set_visibility(not self._shown)
        self._more.set_visibility(self._next is not None)

    def _columns(self) -> list[Column]:
        return [
            Column("Letter", lambda row: Markup('<span class="mono">{}</span>').format(row["id"])),
            Column("Projection", "projection"),
            Column("Given up", lambda row: ago(row["at"], now=self._visit.now), is_wide_only=True),
            Column("Tries", lambda row: str(row["tries"]), is_number=True, is_wide_only=True),
            Column("Reason", "reason", is_wide_only=True),
            Column("", _actions, is_number=True),
        ]  # fmt: skip

    async def _on_click(self, event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        name, letter_id = event.args
        match name:
            case "show":
                await self._show(letter_id)
            case "retry":
                await self._visit.api.post(f"{PATH}/{letter_id}/retry")
                notify_success("It is in the event log again. If it fails again, it comes back here.")
                await self.refresh()
            case _:
                self._ask_to_forget(letter_id)

    async def _show(self, letter_id: str) -> None:
        letter = await self._visit.api.get(f"{PATH}/{letter_id}")
        with ui.dialog(value=True) as dialog, ui.card().classes("wide"):
            facts(
                [
                    ("Letter", letter["id"]),
                    ("Projection", letter["projection"]),
                    ("Given up", full_moment(letter["at"])),
                    ("Tries", str(letter["tries"])),
                    ("Reason", letter["reason"]),
                ]
            )
            ui.html(f"<h3>Event</h3><pre>{escape(letter['event'])}</pre>", sanitize=False)
            with ui.element("div").classes("al-actions"):
                ui.button("Close", on_click=dialog.close).props("flat")

    def _ask_to_forget(self, letter_id: str) -> None:
        async def forget() -> None:
            await self._visit.api.delete(f"{PATH}/{letter_id}")
            notify_success("The letter is deleted.")
            await self.refresh()

        confirm(
            "Delete this letter?",
            "Its event is never counted. This cannot be undone.",
            action="Delete",
            on_confirm=forget,
            is_dangerous=True,
        )


def _actions(row: Json) -> Markup:
    names = (("show", "Show"), ("retry", "Try again"), ("forget", "Delete"))
    return Markup(" ").join(row_button(name, row["id"], label) for name, label in names)
