"""Accounts of people and API keys of machines: create, disable, revoke."""

from collections.abc import Mapping
from typing import Final

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

PASSWORD_HINT: Final = "At least 10 characters. Hand it over in private; its owner can change it."

ACCOUNTS = "/admin/accounts"


async def show_accounts(visit: PageVisit) -> None:
    accounts = AccountsTab(visit)
    with ui.element("div").classes("row-of apart"):
        ui.label("People who can log in to the console and the API.").classes("quiet")
        ui.button("New account", icon="add", on_click=accounts.make).props("unelevated")
    await accounts.show()


class AccountsTab:
    """The list of accounts, and the actions on each."""

    def __init__(self, visit: PageVisit) -> None:
        self._visit = visit
        self._emails: dict[str, str] = {}
        self._table: DataTable | None = None

    async def show(self) -> None:
        self._table = DataTable(
            self._visit.query,
            self._columns(),
            self._read,
            on_action={"disable": self._disable, "enable": self._enable, "password": self._set_password},
            sort="-createdAt",
            caption=strings.SYSTEM_TABS["accounts"],
        )
        self._table.search("Search by e-mail address")
        self._table.filter("role", "Role", strings.ROLES)
        await self._table.show()

    def make(self) -> None:
        with open_dialog("New account") as dialog:
            form = Form({"role": "viewer"})
            form.text("email", "E-mail address", is_required=True)
            form.password("password", "Password").props["hint"] = PASSWORD_HINT
            form.choice("role", "Role", strings.ROLES, is_required=True)
            form.text("accountId", "Account", hint=strings.ACCOUNT_HINT)

            async def save() -> None:
                made = await self._visit.api.post(ACCOUNTS, form.values())
                dialog.close()
                await self._say("{email} can log in now.", made["email"])

            form.buttons("New account", save, on_cancel=dialog.close)

    async def _read(self, query: Mapping[str, str]) -> Json:
        answer = await self._visit.api.get(ACCOUNTS, **query)
        self._emails.update({row["id"]: row["email"] for row in answer["items"]})
        return answer

    async def _say(self, sentence: str, email: str) -> None:
        notify_success(sentence.format(email=email))
        if self._table is not None:
            await self._table.refresh()

    async def _disable(self, person_id: str) -> None:
        email = self._emails[person_id]

        async def go() -> None:
            await self._visit.api.patch(f"{ACCOUNTS}/{person_id}/disable")
            await self._say("{email} is disabled.", email)

        confirm(
            f"Disable {email}?",
            "They are logged out everywhere at once and cannot log in until you enable the account again.",
            action="Disable",
            on_confirm=go,
            is_dangerous=True,
        )

    async def _enable(self, person_id: str) -> None:
        await self._visit.api.patch(f"{ACCOUNTS}/{person_id}/enable")
        await self._say("{email} can log in again.", self._emails[person_id])

    async def _set_password(self, person_id: str) -> None:
        email = self._emails[person_id]
        with open_dialog(f"A new password for {email}") as dialog:
            form = Form()
            form.password("password", "Password").props["hint"] = PASSWORD_HINT

            async def save() -> None:
                await self._visit.api.put(f"{ACCOUNTS}/{person_id}/password", form.values())
                dialog.close()
                await self._say("The password is set; {email} is logged out everywhere.", email)

            form.buttons("Set password", save, on_cancel=dialog.close)

    def _columns(self) -> list[Column]:
        return [
            Column("E-mail address", lambda row: Markup("<b>{}</b>").format(row["email"]), sort="email"),
            Column("Role", "role", sort="role", is_wide_only=True),
            Column(
                "Made",
                lambda row: ago(row["createdAt"], now=self._visit.now),
                sort="createdAt",
                is_wide_only=True,
            ),
            Column(
                "State",
                lambda row: badge("disabled") if row["disabledAt"] else badge("active", "good"),
            ),
            Column("", _account_buttons, is_number=True),
        ]  # fmt: skip


def _account_buttons(row: Json) -> Markup:
    switch = ("enable", "Enable") if row["disabledAt"] else ("disable", "Disable")
    names = (("password", "Set password"), switch)
    return Markup(" ").join(row_button(name, row["id"], label) for name, label in names)


KEYS = "/admin/api-keys"


async def show_keys(visit: PageVisit) -> None:
    with ui.element("div").classes("row-of apart"):
        ui.label("Keys for machines. A key is shown once, when it is made.").classes("quiet")
        ui.button("New key", icon="add", on_click=lambda: _create_key(visit, table)).props("unelevated")
    names: dict[str, str] = {}

    async def read(query: Mapping[str, str]) -> Json:
        answer = await visit.api.get(KEYS, **query)
        names.update({row["id"]: row["name"] for row in answer["items"]})
        return answer

    async def revoke(key_id: str) -> None:
        async def go() -> None:
            await visit.api.delete(f"{KEYS}/{key_id}")
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
        _key_columns(visit),
        read,
        on_action={"revoke": revoke},
        sort="-createdAt",
        empty=("key", "There are no API keys yet", "Make one for each machine that uses the admin API."),
        caption=strings.SYSTEM_TABS["keys"],
    )
    await table.show()


def _key_columns(visit: PageVisit) -> list[Column]:
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


def _create_key(visit: PageVisit, table: DataTable) -> None:
    with open_dialog("New key") as dialog:
        form = Form({"role": "viewer"})
        form.text("name", "Name", is_required=True, hint="What uses it, such as “nightly import”.")
        form.choice("role", "Role", strings.ROLES, is_required=True)
        form.text("accountId", "Account", hint=strings.ACCOUNT_HINT)

        async def save() -> None:
            made = await visit.api.post(KEYS, form.values())
            dialog.close()
            _show_key_once(made["key"])
            await table.refresh()

        form.buttons("New key", save, on_cancel=dialog.close)


def _show_key_once(key: str) -> None:
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
