"""Import and export of the catalog: a download, and an upload that is tried before it is imported."""

import functools
import re
from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup
from nicegui import events, ui

from adloom.console.client import Json, ProblemError
from adloom.console.components.forms.upload import add_file_field
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_hint,
    add_html,
    add_notice,
    add_tiles,
    build_meter,
)
from adloom.console.components.messages import download_sheet, notify_success
from adloom.console.components.table import Column, build_plain_table
from adloom.console.history import format_value
from adloom.console.page import PageVisit
from adloom.console.words.field_labels import label_field

JSON: Final = "application/json"
CSV: Final = "text/csv"
FORMATS: Final = {"json": JSON, "csv": CSV}
PROGRESS_SECONDS: Final = 1.0
SHOWN_MAX: Final = 100  # More changes or problems than a person reads; the API lists the first 1000.
STEPS: Final = {"reading": "The file is read", "checking": "Checked", "writing": "Written"}
ACTIONS: Final = {"created": "New", "updated": "Changed", "unchanged": "Unchanged"}
NAMES: Final = {
    "advertisers": "Advertisers",
    "publishers": "Publishers",
    "sites": "Sites",
    "brands": "Brands",
    "categories": "Categories",
    "products": "Products",
    "seoRecords": "Search entries",
    "placements": "Placements",
    "banners": "Banners",
    "campaigns": "Campaigns",
    "links": "Placements of campaigns",
    "assignments": "Banners on placements",
    "creatives": "Creatives of contextual slots",
    "targetingRules": "Targeting rules",
    "frequencyCaps": "Frequency caps",
}
ITEM: Final = re.compile(r"(?P<list>\w+)\[(?P<index>\d+)\](?:\.(?P<field>.+))?")
ROW: Final = re.compile(r"(?P<row>(?:row|line) \d+)(?:\.(?P<field>.+))?")


async def show_transfer(visit: PageVisit) -> None:
    """Show both: what can be taken out, and what can be brought in."""
    with add_card("Export", note="All that is not deleted"), add_div("stack tight"):
        ui.label(
            "One document of the whole catalog: to keep, to edit in a spreadsheet, or for another installation. Pictures and statistics are not in it."
        )
        with add_div("row-of"):
            for name, label in (("csv", "Download CSV"), ("json", "Download JSON")):
                ui.button(label, icon="download", on_click=functools.partial(_download, visit, name)).props(
                    "outline"
                )
    with add_card("Import", note="Nothing is deleted by it"), add_div("stack tight"):
        ui.label(
            "Choose a file: first you see what it would change. It is imported as a whole, or not at all."
        )
        CatalogUpload(visit)


async def _download(visit: PageVisit, name: str) -> None:
    text, file = (
        await visit.api.get_text("/admin/export", format=name),
        f"adloom-catalog-{visit.today}.{name}",
    )
    if name == "csv":
        download_sheet(text, file)
        return
    ui.download.content(text, file, JSON)
    notify_success("The catalog is downloaded.")


class CatalogUpload:
    """A file that is tried, shown and imported."""

    def __init__(self, visit: PageVisit) -> None:
        self._visit = visit
        self._upload = add_file_field(
            ".csv,.json",
            "CSV or JSON, as an export has it; up to 64 MB.",
            self._take,
        )
        self._shown = add_div("stack").props('role="status"')

    async def _take(self, event: events.UploadEventArguments) -> None:
        name, data = event.file.name or "the file", await event.file.read()
        self._upload.reset()
        await self._send(name, data, is_dry_run=True)

    async def _send(self, name: str, data: bytes, *, is_dry_run: bool) -> None:
        self._shown.clear()
        with self._shown:
            self._show_progress()
        try:
            answer = await self._visit.api.upload(
                "/admin/import", data, content_type=find_type(name, data), dryRun=is_dry_run
            )
        except ProblemError as error:
            self._show_problems(name, error)
            return
        self._shown.clear()
        with self._shown:
            if is_dry_run:
                self._show_preview(name, data, answer)
            else:
                add_notice(describe_counts(answer), kind="good", title=f"“{name}” is imported")

    def _show_progress(self) -> None:
        """Show how far the import is, until what comes of it is shown in its place."""
        with add_div("stack tight"):
            ui.spinner(size="lg")
            bar, line = add_html(""), add_hint()

        async def update() -> None:
            progress = await self._visit.api.get("/admin/import")
            bar.content = build_meter(progress["done"] / progress["total"]) if progress["total"] else ""
            line.set_text(describe_progress(progress))

        ui.timer(PROGRESS_SECONDS, update)

    def _show_problems(self, name: str, error: ProblemError) -> None:
        self._shown.clear()
        with self._shown:
            add_notice(error.message, kind="bad", title=f"“{name}” cannot be imported as it is")
            if not error.fields:
                return
            rows = [describe_problem(place, message) for place, message in error.fields.items()]
            columns = [Column("Where", "where"), Column("Field", "field"), Column("What is wrong", "message")]
            add_html(build_plain_table(columns, rows[:SHOWN_MAX]))
            if len(rows) > SHOWN_MAX:
                add_hint(f"and {len(rows) - SHOWN_MAX:,} more")

    def _show_preview(self, name: str, data: bytes, answer: Json) -> None:
        for action, tile in zip(ACTIONS, add_tiles(*ACTIONS.values()), strict=True):
            tile.update(f"{answer[action]:,}")
        counts: Mapping[str, Json] = answer["counts"]
        columns = [
            Column("What", "what"),
            *(
                Column(label, lambda row, action=action: f"{row[action]:,}", is_number=True)
                for action, label in ACTIONS.items()
            ),
        ]
        add_html(
            build_plain_table(columns, [{"what": NAMES.get(key, key), **one} for key, one in counts.items()])
        )
        total = answer["created"] + answer["updated"]
        if not total:
            add_notice("The catalog is already as the file says.", title="Nothing would change")
            return
        _show_changes(answer["changes"], total)
        with add_div("al-actions"):
            ui.button("Cancel", on_click=self._shown.clear).props("flat")
            ui.button("Import", on_click=lambda: self._send(name, data, is_dry_run=False)).props("unelevated")


def _show_changes(changes: list[Json], total: int) -> None:
    columns = [
        Column("Where", lambda row: find_place(row["path"])[0]),
        Column("What", lambda row: "new" if row["action"] == "create" else "changed"),
        Column("Changes", _list_fields),
    ]
    add_html(build_plain_table(columns, changes[:SHOWN_MAX]))
    if total > SHOWN_MAX:
        add_hint(f"and {total - SHOWN_MAX:,} more")


def _list_fields(change: Json) -> Markup:
    fields: Mapping[str, Mapping[str, Any]] = change["changes"]
    return Markup("<br>").join(
        Markup("{}: <del>{}</del> → <ins>{}</ins>").format(
            label_field(name), format_value(name, one.get("from"), {}), format_value(name, one.get("to"), {})
        )
        for name, one in fields.items()
        if name != "updatedAt"
    )


def find_type(name: str, data: bytes) -> str:
    """Return the type of a file, by its name; without one that says it, by its first sign."""
    ending = name.rpartition(".")[2].lower()
    return FORMATS.get(ending) or (JSON if data.lstrip()[:1] == b"{" else CSV)


def find_place(path: str) -> tuple[str, str]:
    """Return where a problem is, and the field: `row 5.ctaUrl`, or `banners[3].ctaUrl`, whose items people count from 1."""
    if found := ROW.fullmatch(path):
        return found["row"].capitalize(), _name_field(found["field"])
    if found := ITEM.fullmatch(path):
        place = f"{NAMES.get(found['list'], found['list'])}, item {int(found['index']) + 1}"
        return place, _name_field(found["field"])
    return "The file", "" if path == "body" else path


def describe_problem(path: str, message: str) -> Json:
    where, field = find_place(path)
    return {"where": where, "field": field, "message": message}


def _name_field(field: str | None) -> str:
    return "" if field is None else f"{label_field(field)} ({field})"


def describe_progress(progress: Json) -> str:
    """Describe the progress of an import; empty if none is running."""
    step = STEPS.get(progress["step"], "")
    return f"{step}: {progress['done']:,} of {progress['total']:,}" if progress["total"] else step


def describe_counts(answer: Json) -> str:
    """Say what an import has changed."""
    return f"{answer['created']:,} new, {answer['updated']:,} changed, {answer['unchanged']:,} as they were."
