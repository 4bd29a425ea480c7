"""API keys of machines: made, shown once, revoked."""

from collections.abc import Mapping

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.confirm import confirm
from adloom.console.components.form import Form
from adloom.console.components.format import ago
from adloom.console.components.heading import badge
from adloom.console.components.table import Column, Table, action
from adloom.console.components.toast import say_good
from adloom.console.page import Visit
from adloom.console.words import shell
from adloom.console.words import system as words

PATH = "/admin/api-keys"


async def show_keys(visit: Visit) -> None:
    """List the keys."""
    with ui.element("div").classes("row-of apart"):
        ui.label(words.KEYS_NOTE).classes("quiet")
        ui.button(words.NEW_KEY, icon="add", on_click=lambda: _make(visit, table)).props("unelevated")
    names: dict[str, str] = {}

    async def read(query: Mapping[str, str]) -> Json:
        answer = await visit.api.get(PATH, **query)
        names.update({row["id"]: row["name"] for row in answer["items"]})
        return answer

    async def revoke(key_id: str) -> None:
        async def go() -> None:
            await visit.api.delete(f"{PATH}/{key_id}")
            say_good(words.KEY_REVOKED)
            await table.refresh()

        confirm(
            words.REVOKE_TITLE.format(name=names.get(key_id, "")),
            words.REVOKE_CONSEQUENCE,
            action=words.REVOKE,
            on_confirm=go,
            is_dangerous=True,
        )

    table = Table(
        visit.query,
        _columns(visit),
        read,
        on_action={"revoke": revoke},
        sort="-createdAt",
        empty=("key", words.NO_KEYS, words.NO_KEYS_NOTE),
        caption=words.TABS["keys"],
    )
    await table.show()


def _columns(visit: Visit) -> list[Column]:
    return [
        Column(label=words.KEY_NAME, cell=lambda row: Markup("<b>{}</b>").format(row["name"])),
        Column(label=words.KEY_HINT, cell=lambda row: Markup('<span class="mono">{}…</span>').format(row["keyHint"])),
        Column(label=words.ROLE, cell=lambda row: row["role"]),
        Column(
            label=words.CREATED,
            cell=lambda row: ago(row["createdAt"], now=visit.now),
            sort="createdAt",
            is_wide_only=True,
        ),
        Column(
            label=words.STATE,
            cell=lambda row: badge(words.REVOKED) if row["revokedAt"] else badge(words.IN_USE, "good"),
        ),
        Column(
            label="",
            cell=lambda row: "" if row["revokedAt"] else action("revoke", row["id"], words.REVOKE),
            is_number=True,
        ),
    ]  # fmt: skip


def _make(visit: Visit, table: Table) -> None:
    with ui.dialog(value=True) as dialog, ui.card():
        ui.html(f"<h2>{words.NEW_KEY}</h2>", sanitize=False)
        form = Form({"role": "viewer"})
        form.text("name", words.KEY_NAME, is_required=True, hint=words.KEY_NAME_HINT)
        form.choice("role", words.ROLE, words.ROLES, is_required=True)
        form.text("accountId", words.ACCOUNT, hint=words.ACCOUNT_HINT)

        async def save() -> None:
            made = await visit.api.post(PATH, form.values())
            dialog.close()
            _show_once(made["key"])
            await table.refresh()

        form.actions(words.NEW_KEY, save, on_cancel=dialog.close)


def _show_once(key: str) -> None:
    with ui.dialog(value=True).props("persistent") as dialog, ui.card():
        ui.html(f"<h2>{words.KEY_MADE_TITLE}</h2>", sanitize=False)
        ui.label(words.KEY_MADE_NOTE)
        with ui.element("div").classes("al-secret"):
            ui.label(key).classes("mono grow")

            def copy() -> None:
                ui.clipboard.write(key)
                say_good(shell.COPIED)

            ui.button(icon="content_copy", on_click=copy).props(f'flat round aria-label="{shell.COPY}"')
        with ui.element("div").classes("al-actions"):
            ui.button(words.KEY_DONE, on_click=dialog.close).props("unelevated")
