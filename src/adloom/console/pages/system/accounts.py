"""The accounts of people: made, given another password, disabled and enabled."""

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
from adloom.console.words import system as words

PATH = "/admin/accounts"


async def show_accounts(visit: Visit) -> None:
    """List the accounts."""
    accounts = Accounts(visit)
    with ui.element("div").classes("row-of apart"):
        ui.label(words.ACCOUNTS_NOTE).classes("quiet")
        ui.button(words.NEW_ACCOUNT, icon="add", on_click=accounts.make).props("unelevated")
    await accounts.show()


class Accounts:
    """The list, and what can be done with each account."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._emails: dict[str, str] = {}
        self._table: Table | None = None

    async def show(self) -> None:
        """Build the list."""
        self._table = Table(
            self._visit.query,
            self._columns(),
            self._read,
            on_action={"disable": self._disable, "enable": self._enable, "password": self._set_password},
            sort="-createdAt",
            caption=words.TABS["accounts"],
        )
        self._table.search(words.SEARCH_ACCOUNTS)
        self._table.filter("role", words.ROLE, words.ROLES)
        await self._table.show()

    def make(self) -> None:
        """Ask who shall log in."""
        with ui.dialog(value=True) as dialog, ui.card():
            ui.html(f"<h2>{words.NEW_ACCOUNT}</h2>", sanitize=False)
            form = Form({"role": "viewer"})
            form.text("email", words.EMAIL, is_required=True)
            form.password("password", words.PASSWORD).props["hint"] = words.PASSWORD_HINT
            form.choice("role", words.ROLE, words.ROLES, is_required=True)
            form.text("accountId", words.ACCOUNT, hint=words.ACCOUNT_HINT)

            async def save() -> None:
                made = await self._visit.api.post(PATH, form.values())
                dialog.close()
                await self._say(words.ACCOUNT_MADE, made["email"])

            form.actions(words.NEW_ACCOUNT, save, on_cancel=dialog.close)

    async def _read(self, query: Mapping[str, str]) -> Json:
        answer = await self._visit.api.get(PATH, **query)
        self._emails.update({row["id"]: row["email"] for row in answer["items"]})
        return answer

    async def _say(self, sentence: str, email: str) -> None:
        say_good(sentence.format(email=email))
        if self._table is not None:
            await self._table.refresh()

    async def _disable(self, person_id: str) -> None:
        email = self._emails[person_id]

        async def go() -> None:
            await self._visit.api.patch(f"{PATH}/{person_id}/disable")
            await self._say(words.ACCOUNT_DISABLED, email)

        confirm(
            words.DISABLE_TITLE.format(email=email),
            words.DISABLE_CONSEQUENCE,
            action=words.DISABLE,
            on_confirm=go,
            is_dangerous=True,
        )

    async def _enable(self, person_id: str) -> None:
        await self._visit.api.patch(f"{PATH}/{person_id}/enable")
        await self._say(words.ACCOUNT_ENABLED, self._emails[person_id])

    async def _set_password(self, person_id: str) -> None:
        email = self._emails[person_id]
        with ui.dialog(value=True) as dialog, ui.card():
            ui.html(
                Markup("<h2>{}</h2>").format(words.SET_PASSWORD_TITLE.format(email=email)), sanitize=False
            )
            form = Form()
            form.password("password", words.PASSWORD).props["hint"] = words.PASSWORD_HINT

            async def save() -> None:
                await self._visit.api.put(f"{PATH}/{person_id}/password", form.values())
                dialog.close()
                await self._say(words.PASSWORD_SET, email)

            form.actions(words.SET_PASSWORD, save, on_cancel=dialog.close)

    def _columns(self) -> list[Column]:
        return [
            Column(label=words.EMAIL, cell=lambda row: Markup("<b>{}</b>").format(row["email"]), sort="email"),
            Column(label=words.ROLE, cell=lambda row: row["role"], sort="role", is_wide_only=True),
            Column(
                label=words.CREATED,
                cell=lambda row: ago(row["createdAt"], now=self._visit.now),
                sort="createdAt",
                is_wide_only=True,
            ),
            Column(
                label=words.STATE,
                cell=lambda row: badge(words.DISABLED) if row["disabledAt"] else badge(words.ACTIVE, "good"),
            ),
            Column(label="", cell=_actions, is_number=True),
        ]  # fmt: skip


def _actions(row: Json) -> Markup:
    switch = ("enable", words.ENABLE) if row["disabledAt"] else ("disable", words.DISABLE)
    names = (("password", words.SET_PASSWORD), switch)
    return Markup(" ").join(action(name, row["id"], label) for name, label in names)
