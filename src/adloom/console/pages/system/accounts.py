"""The accounts of people: invite, edit, disable and remove them."""

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.format import format_full_moment
from adloom.console.components.forms import checks
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import add_div, build_badge
from adloom.console.components.messages import confirm, notify_success
from adloom.console.components.table import Column, DataTable, build_row_button
from adloom.console.page import PageVisit
from adloom.console.pages.system.access import (
    add_role_fields,
    build_made_column,
    show_account,
    show_secret_once,
)

ACCOUNTS: Final = "/admin/accounts"
PASSWORD_HINT: Final = "At least 10 characters. Hand it over in private; its owner can change it."
NO_PASSWORD_HINT: Final = "Leave it empty to get a link with which the person chooses one."
LINK_TITLES: Final = {"invitation": "An invitation for {email}", "reset": "A new password for {email}"}
LINK_NOTE: Final = (
    "Send this link to {email}, in private: with it they choose a password. It works once, until {until},"
    " and is not shown again."
)


class AccountsTab:
    """The list of accounts, and the actions on each."""

    def __init__(self, visit: PageVisit) -> None:
        self._visit = visit
        self._people: dict[str, Json] = {}
        with add_div("row-of apart"):
            ui.label("People who can log in to the console and the API.").classes("quiet")
            ui.button("New account", icon="add", on_click=self._create).props("unelevated")
        self.table = DataTable(
            visit.query,
            [
                Column("E-mail address", _build_email, sort="email"),
                Column("Role", "role", sort="role", is_wide_only=True),
                Column("Acts for", show_account, is_wide_only=True),
                build_made_column(visit),
                Column("State", _build_state, is_wide_only=True),
                Column("", _build_buttons, is_number=True),
            ],
            self._read,
            on_action={
                "edit": self._edit,
                "link": self._make_link,
                "password": self._set_password,
                "disable": self._disable,
                "enable": self._enable,
                "factor": self._remove_factor,
                "remove": self._remove,
            },
            sort="-createdAt",
            caption="Accounts",
        )
        self.table.search("Search by e-mail address or name")
        self.table.filter("role", "Role", strings.ROLES)

    async def _read(self, query: Mapping[str, str]) -> Json:
        answer = await self._visit.api.get(ACCOUNTS, **query)
        self._people.update({row["id"]: row for row in answer["items"]})
        return answer

    def _find_email(self, person_id: str) -> str:
        return self._people[person_id]["email"]

    async def _report(self, sentence: str) -> None:
        notify_success(sentence)
        await self.table.refresh()

    async def _create(self) -> None:
        async def save(form: Form) -> None:
            made = await self._visit.api.post(ACCOUNTS, form.read_values())
            self._people[made["id"]] = made
            if made["hasPassword"]:
                await self._report(f"{made['email']} can log in now.")
            else:
                await self.table.refresh()
                await self._make_link(made["id"])

        with open_form_dialog("New account", "Create", save, {"role": "viewer"}) as form:
            form.add_text("email", "E-mail address", is_required=True)
            await add_role_fields(form, self._visit.api)
            form.add_time_zone("timeZone", is_required=False)
            form.add_password("password", "Password", is_required=False, check=checks.check_password).props[
                "hint"
            ] = NO_PASSWORD_HINT

    async def _edit(self, person_id: str) -> None:
        person = self._people[person_id]

        async def save(form: Form) -> None:
            values = form.read_values()
            changes = {name: value for name, value in values.items() if value != person[name]}
            if changes.keys() & {"role", "accountId"}:
                changes |= {name: values[name] for name in ("role", "accountId")}
            if not changes:
                notify_success(strings.NOTHING_CHANGED)
                return
            changed = await self._visit.api.patch(f"{ACCOUNTS}/{person_id}", changes)
            await self._report(f"{changed['email']} is changed.")

        current = (person["accountId"], person["accountName"] or person["accountId"])
        with open_form_dialog(f"Edit {person['email']}", "Save", save, person) as form:
            form.add_text("email", "E-mail address", is_required=True)
            await add_role_fields(form, self._visit.api, current if person["accountId"] else None)
            form.add_time_zone("timeZone", is_required=False)
            ui.label(
                "Another role, or acting for another, logs them out and revokes their API keys."
            ).classes("quiet small")

    async def _make_link(self, person_id: str) -> None:
        email = self._find_email(person_id)
        made = await self._visit.api.post(f"{ACCOUNTS}/{person_id}/link")
        note = LINK_NOTE.format(email=email, until=format_full_moment(made["expiresAt"]))

        async def send() -> None:
            await self._visit.api.post(f"{ACCOUNTS}/{person_id}/mail-link")
            notify_success(f"A link goes to {email}.")

        title = LINK_TITLES[made["purpose"]].format(email=email)
        button = ("Send one by e-mail", send) if made["canBeMailed"] else None
        show_secret_once(title, note, made["url"], button)

    async def _disable(self, person_id: str) -> None:
        email = self._find_email(person_id)

        confirm(
            f"Disable {email}?",
            "They are logged out everywhere at once and cannot log in until you enable the account again.",
            action="Disable",
            on_confirm=lambda: self._visit.api.patch(f"{ACCOUNTS}/{person_id}/disable"),
            success=f"{email} is disabled.",
            on_success=self.table.refresh,
            is_dangerous=True,
        )

    async def _enable(self, person_id: str) -> None:
        await self._visit.api.patch(f"{ACCOUNTS}/{person_id}/enable")
        await self._report(f"{self._find_email(person_id)} can log in again.")

    async def _remove(self, person_id: str) -> None:
        email = self._find_email(person_id)

        confirm(
            f"Remove {email}?",
            "They are logged out everywhere at once, and their API keys are revoked. This cannot be undone."
            " What they did stays in the history, and the address can be used for a new account.",
            action="Remove",
            on_confirm=lambda: self._visit.api.delete(f"{ACCOUNTS}/{person_id}"),
            success=f"{email} is removed.",
            on_success=self.table.refresh,
            is_dangerous=True,
        )

    async def _remove_factor(self, person_id: str) -> None:
        email = self._find_email(person_id)

        confirm(
            f"Take the second factor off {email}?",
            "For who has lost their phone and the recovery codes. Make sure that it is really them who ask."
            " Until they set it up again, their password alone lets them in.",
            action="Take it off",
            on_confirm=lambda: self._visit.api.delete(f"{ACCOUNTS}/{person_id}/second-factor"),
            success=f"{email} logs in with the password alone.",
            on_success=self.table.refresh,
            is_dangerous=True,
        )

    async def _set_password(self, person_id: str) -> None:
        email = self._find_email(person_id)

        async def save(form: Form) -> None:
            await self._visit.api.put(f"{ACCOUNTS}/{person_id}/password", form.read_values())
            await self._report(f"The password is set; {email} is logged out everywhere.")

        with open_form_dialog(f"A new password for {email}", "Set password", save) as form:
            form.add_password("password", "Password", check=checks.check_password).props["hint"] = (
                PASSWORD_HINT
            )


async def show_accounts(visit: PageVisit) -> None:
    await AccountsTab(visit).table.show()


def _build_state(row: Json) -> Markup:
    if row["disabledAt"]:
        return build_badge("disabled")
    state = (
        build_badge("active", "good")
        if row["hasPassword"] or row["hasSingleSignOn"]
        else build_badge("invited")
    )
    return state + (Markup(" ") + build_badge("2nd factor", "info") if row["hasSecondFactor"] else "")


def _build_email(row: Json) -> Markup:
    """Show below it what phones have no columns for: the role, for whom it acts, and the state."""
    of_whom = Markup(" · {}").format(show_account(row)) if row["accountId"] else ""
    return Markup('<b>{}</b><div class="quiet small wrap al-phone-only">{}{}<br>{}</div>').format(
        row["email"], row["role"], of_whom, _build_state(row)
    )


def _build_buttons(row: Json) -> Markup:
    names = {"edit": "Edit"}
    if row["disabledAt"]:
        names["enable"] = "Enable"
    else:
        names["link"] = "Link" if row["hasPassword"] else "Invite"
        names |= {"password": "Set password", "disable": "Disable"}
    if row["hasSecondFactor"]:
        names["factor"] = "Second factor off"
    names["remove"] = "Remove"
    return Markup(" ").join(build_row_button(name, row["id"], label) for name, label in names.items())
