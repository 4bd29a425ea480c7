"""Accounts of people, API keys of machines and tokens of the command line: create, disable, revoke."""

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.format import ago, moment
from adloom.console.components.forms.form import Form, form_dialog
from adloom.console.components.layout import badge, copy_button, div
from adloom.console.components.messages import confirm, notify_success, open_dialog
from adloom.console.components.table import Column, DataTable, row_button
from adloom.console.page import PageVisit

PASSWORD_HINT: Final = "At least 10 characters. Hand it over in private; its owner can change it."
ACCOUNTS: Final = "/admin/accounts"
KEYS: Final = "/admin/api-keys"
TOKENS: Final = "/admin/access-tokens"


class AccountsTab:
    """The list of accounts, and the actions on each."""

    def __init__(self, visit: PageVisit) -> None:
        self._visit = visit
        self._emails: dict[str, str] = {}
        with div("row-of apart"):
            ui.label("People who can log in to the console and the API.").classes("quiet")
            ui.button("New account", icon="add", on_click=self._create).props("unelevated")
        self.table = DataTable(
            visit.query,
            [
                Column("E-mail address", lambda row: Markup("<b>{}</b>").format(row["email"]), sort="email"),
                Column("Role", "role", sort="role", is_wide_only=True),
                _made_column(visit),
                Column(
                    "State", lambda row: badge("disabled") if row["disabledAt"] else badge("active", "good")
                ),
                Column("", _account_buttons, is_number=True),
            ],
            self._read,
            on_action={"disable": self._disable, "enable": self._enable, "password": self._set_password},
            sort="-createdAt",
            caption="Accounts",
        )
        self.table.search("Search by e-mail address")
        self.table.filter("role", "Role", strings.ROLES)

    async def _read(self, query: Mapping[str, str]) -> Json:
        answer = await self._visit.api.get(ACCOUNTS, **query)
        self._emails.update({row["id"]: row["email"] for row in answer["items"]})
        return answer

    async def _say(self, sentence: str) -> None:
        notify_success(sentence)
        await self.table.refresh()

    def _create(self) -> None:
        async def save(form: Form) -> None:
            made = await self._visit.api.post(ACCOUNTS, form.values())
            await self._say(f"{made['email']} can log in now.")

        with form_dialog("New account", "New account", save, {"role": "viewer"}) as form:
            form.text("email", "E-mail address", is_required=True)
            form.password("password", "Password").props["hint"] = PASSWORD_HINT
            _add_role_fields(form)

    async def _disable(self, person_id: str) -> None:
        email = self._emails[person_id]

        async def go() -> None:
            await self._visit.api.patch(f"{ACCOUNTS}/{person_id}/disable")
            await self._say(f"{email} is disabled.")

        confirm(
            f"Disable {email}?",
            "They are logged out everywhere at once and cannot log in until you enable the account again.",
            action="Disable",
            on_confirm=go,
            is_dangerous=True,
        )

    async def _enable(self, person_id: str) -> None:
        await self._visit.api.patch(f"{ACCOUNTS}/{person_id}/enable")
        await self._say(f"{self._emails[person_id]} can log in again.")

    async def _set_password(self, person_id: str) -> None:
        email = self._emails[person_id]

        async def save(form: Form) -> None:
            await self._visit.api.put(f"{ACCOUNTS}/{person_id}/password", form.values())
            await self._say(f"The password is set; {email} is logged out everywhere.")

        with form_dialog(f"A new password for {email}", "Set password", save) as form:
            form.password("password", "Password").props["hint"] = PASSWORD_HINT


async def show_accounts(visit: PageVisit) -> None:
    await AccountsTab(visit).table.show()


def _account_buttons(row: Json) -> Markup:
    switch = ("enable", "Enable") if row["disabledAt"] else ("disable", "Disable")
    names = (("password", "Set password"), switch)
    return Markup(" ").join(row_button(name, row["id"], label) for name, label in names)


def _made_column(visit: PageVisit) -> Column:
    return Column(
        "Made", lambda row: ago(row["createdAt"], now=visit.now), sort="createdAt", is_wide_only=True
    )


def _use_columns(visit: PageVisit) -> list[Column]:
    """Columns of what ends by itself or is revoked: use, end, state and the button to revoke."""

    def has_expired(row: Json) -> bool:
        expires_at = moment(row["expiresAt"])
        return expires_at is not None and expires_at <= visit.now

    def state(row: Json) -> str | Markup:
        if row["revokedAt"]:
            return badge("revoked")
        return badge("expired") if has_expired(row) else badge("in use", "good")

    def button(row: Json) -> str | Markup:
        return "" if row["revokedAt"] or has_expired(row) else row_button("revoke", row["id"], "Revoke")

    return [
        Column("Last used", lambda row: ago(row["lastUsedAt"], now=visit.now), is_wide_only=True),
        Column("Ends", lambda row: ago(row["expiresAt"], now=visit.now), is_wide_only=True),
        Column("State", state),
        Column("", button, is_number=True),
    ]


def _add_role_fields(form: Form) -> None:
    form.choice("role", "Role", strings.ROLES, is_required=True)
    form.text("accountId", "Account", hint="The id of the advertiser or publisher that it acts for.")


async def show_keys(visit: PageVisit) -> None:
    with div("row-of apart"):
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
        [
            Column("Name", lambda row: Markup("<b>{}</b>").format(row["name"])),
            Column("Begins with", lambda row: Markup('<span class="mono">{}…</span>').format(row["keyHint"])),
            Column("Role", "role"),
            _made_column(visit),
            *_use_columns(visit),
        ],
        read,
        on_action={"revoke": revoke},
        sort="-createdAt",
        empty=("key", "There are no API keys yet", "Make one for each machine that uses the admin API."),
        caption="API keys",
    )
    await table.show()


async def show_tokens(visit: PageVisit) -> None:
    ui.label(
        "Tokens that `adloom token` has made. One is listed once it was used, or made where the database is."
    ).classes("quiet")

    async def revoke(token_id: str) -> None:
        await visit.api.delete(f"{TOKENS}/{token_id}")
        notify_success("The token is revoked.")
        await table.refresh()

    table = DataTable(
        visit.query,
        [
            Column("For", lambda row: Markup("<b>{}</b>").format(row["subject"])),
            Column("Role", "role"),
            Column("Made", lambda row: ago(row["issuedAt"], now=visit.now), sort="issuedAt"),
            *_use_columns(visit),
        ],
        lambda query: visit.api.get(TOKENS, **query),
        on_action={"revoke": revoke},
        sort="-issuedAt",
        empty=(
            "terminal",
            "There are no tokens",
            "`adloom token` makes one, for 24 hours unless told otherwise.",
        ),
        caption="Tokens",
    )
    await table.show()


def _create_key(visit: PageVisit, table: DataTable) -> None:
    async def save(form: Form) -> None:
        made = await visit.api.post(KEYS, form.values())
        _show_key_once(made["key"])
        await table.refresh()

    with form_dialog("New key", "New key", save, {"role": "viewer"}) as form:
        form.text("name", "Name", is_required=True, hint="What uses it, such as “nightly import”.")
        _add_role_fields(form)


def _show_key_once(key: str) -> None:
    with open_dialog("Here is the key") as dialog:
        dialog.props("persistent")
        ui.label("Copy it now: it is not shown again, and only its hash is kept.")
        with div("al-secret"):
            ui.label(key).classes("mono grow")
            copy_button(key)
        with div("al-actions"):
            ui.button("I have it", on_click=dialog.close).props("unelevated")
