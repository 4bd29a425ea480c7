"""API keys: create, show once, revoke."""

from collections.abc import Mapping

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.format import ago
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import badge
from adloom.console.components.messages import confirm, notify_success, open_dialog
from adloom.console.components.table import Column, DataTable, row_button
from adloom.console.page import PageVisit

PATH = "/admin/api-keys"


async def show_keys(visit: PageVisit) -> None:
    with ui.element("div").classes("row-of apart"):
        ui.label("Keys for machines. A key is shown once, when it is made.").classes("quiet")
        ui.button("New key", icon="add", on_click=lambda: _make(visit, table)).props("unelevated")
    names: dict[str, str] = {}

    async def read(query: Mapping[str, str]) -> Json:
        answer = await visit.api.get(PATH, **query)
        names.update({row["id"]: row["name"] for row in answer["items"]})
        return answer

    async def revoke(key_id: str) -> None:
        async def go() -> None:
            await visit.api.delete(f"{PATH}/{key_id}")
            notify_success("The key is revoked.")
            await table.refresh()

        confirm(
            f"Revoke “{names.get(key_id, '')}”?",
            "Everything that uses it is refused from now on. This cannot be undone.",
            action="Revoke",
            on_confirm=go,
            is_dangerous=True,
        )

    table = DataTable(
        visit.query,
        _columns(visit),
        read,
        on_action={"revoke": revoke},
        sort="-createdAt",
        empty=("key", "There are no API keys yet", "Make one for each machine that uses the admin API."),
        caption=strings.SYSTEM_TABS["keys"],
    )
    await table.show()


def _columns(visit: PageVisit) -> list[Column]:
    return [
        Column("Name", lambda row: Markup("<b>{}</b>").format(row["name"])),
        Column("Begins with", lambda row: Markup('<span class="mono">{}…</span>').format(row["keyHint"])),
        Column("Role", "role"),
        Column(
            "Made",
            lambda row: ago(row["createdAt"], now=visit.now),
            sort="createdAt",
            is_wide_only=True,
        ),
        Column(
            "State",
            lambda row: badge("revoked") if row["revokedAt"] else badge("in use", "good"),
        ),
        Column(
            "",
            lambda row: "" if row["revokedAt"] else row_button("revoke", row["id"], "Revoke"),
            is_number=True,
        ),
    ]  # fmt: skip


def _make(visit: PageVisit, table: DataTable) -> None:
    with open_dialog("New key") as dialog:
        form = Form({"role": "viewer"})
        form.text("name", "Name", is_required=True, hint="What uses it, such as “nightly import”.")
        form.choice("role", "Role", strings.ROLES, is_required=True)
        form.text("accountId", "Account", hint=strings.ACCOUNT_HINT)

        async def save() -> None:
            made = await visit.api.post(PATH, form.values())
            dialog.close()
            _show_once(made["key"])
            await table.refresh()

        form.buttons("New key", save, on_cancel=dialog.close)


def _show_once(key: str) -> None:
    with ui.dialog(value=True).props("persistent") as dialog, ui.card():
        ui.html("<h2>Here is the key</h2>", sanitize=False)
        ui.label("Copy it now: it is not shown again, and only its hash is kept.")
        with ui.element("div").classes("al-secret"):
            ui.label(key).classes("mono grow")

            def copy() -> None:
                ui.clipboard.write(key)
                notify_success("Copied")

            ui.button(icon="content_copy", on_click=copy).props('flat round aria-label="Copy"')
        with ui.element("div").classes("al-actions"):
            ui.button("I have it", on_click=dialog.close).props("unelevated")
