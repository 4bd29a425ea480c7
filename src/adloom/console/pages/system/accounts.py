"""The accounts of people: create, set a password, disable and enable."""

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

PATH = "/admin/accounts"


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
                made = await self._visit.api.post(PATH, form.values())
                dialog.close()
                await self._say("{email} can log in now.", made["email"])

            form.buttons("New account", save, on_cancel=dialog.close)

    async def _read(self, query: Mapping[str, str]) -> Json:
        answer = await self._visit.api.get(PATH, **query)
        self._emails.update({row["id"]: row["email"] for row in answer["items"]})
        return answer

    async def _say(self, sentence: str, email: str) -> None:
        notify_success(sentence.format(email=email))
        if self._table is not None:
            await self._table.refresh()

    async def _disable(self, person_id: str) -> None:
        email = self._emails[person_id]

        async def go() -> None:
            await self._visit.api.patch(f"{PATH}/{person_id}/disable")
            await self._say("{email} is disabled.", email)

        confirm(
            f"Disable {email}?",
            "They are logged out everywhere at once and cannot log in until you enable the account again.",
            action="Disable",
            on_confirm=go,
            is_dangerous=True,
        )

    async def _enable(self, person_id: str) -> None:
        await self._visit.api.patch(f"{PATH}/{person_id}/enable")
        await self._say("{email} can log in again.", self._emails[person_id])

    async def _set_password(self, person_id: str) -> None:
        email = self._emails[person_id]
        with open_dialog(f"A new password for {email}") as dialog:
            form = Form()
            form.password("password", "Password").props["hint"] = PASSWORD_HINT

            async def save() -> None:
                await self._visit.api.put(f"{PATH}/{person_id}/password", form.values())
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
            Column("", _actions, is_number=True),
        ]  # fmt: skip


def _actions(row: Json) -> Markup:
    switch = ("enable", "Enable") if row["disabledAt"] else ("disable", "Disable")
    names = (("password", "Set password"), switch)
    return Markup(" ").join(row_button(name, row["id"], label) for name, label in names)
