"""API keys of machines and tokens of the command line: create and revoke; and for whom they act."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json, fetch_names
from adloom.console.components.format import format_ago, format_moment
from adloom.console.components.forms.fields import OPTIONS_MAX, SEARCH_WAIT_MILLISECONDS
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import add_copy_button, add_div, build_badge
from adloom.console.components.messages import confirm, notify_success, open_dialog
from adloom.console.components.table import Column, DataTable, build_row_button
from adloom.console.page import PageVisit
from adloom.core.caller import ACCOUNT_ROLES

KEYS: Final = "/admin/api-keys"
TOKENS: Final = "/admin/access-tokens"


def build_made_column(visit: PageVisit) -> Column:
    return Column(
        "Made", lambda row: format_ago(row["createdAt"], now=visit.now), sort="createdAt", is_wide_only=True
    )


def _use_columns(visit: PageVisit) -> list[Column]:
    """Columns of what ends by itself or is revoked: use, end, state and the button to revoke."""

    def has_expired(row: Json) -> bool:
        expires_at = format_moment(row["expiresAt"])
        return expires_at is not None and expires_at <= visit.now

    def build_state(row: Json) -> str | Markup:
        if row["revokedAt"]:
            return build_badge("revoked")
        return build_badge("expired") if has_expired(row) else build_badge("in use", "good")

    def build_button(row: Json) -> str | Markup:
        return "" if row["revokedAt"] or has_expired(row) else build_row_button("revoke", row["id"], "Revoke")

    return [
        Column("Last used", lambda row: format_ago(row["lastUsedAt"], now=visit.now), is_wide_only=True),
        Column("Ends", lambda row: format_ago(row["expiresAt"], now=visit.now), is_wide_only=True),
        Column("State", build_state),
        Column("", build_button, is_number=True),
    ]


async def show_keys(visit: PageVisit) -> None:
    with add_div("row-of apart"):
        ui.label("Keys for machines. A key is shown once, when it is made.").classes("quiet")
        ui.button("New key", icon="add", on_click=lambda: _create_key(visit, table)).props("unelevated")
    names: dict[str, str] = {}

    async def read(query: Mapping[str, str]) -> Json:
        answer = await visit.api.get(KEYS, **query)
        await add_account_names(visit.api, answer["items"])
        names.update({row["id"]: row["name"] for row in answer["items"]})
        return answer

    async def revoke(key_id: str) -> None:
        confirm(
            f"Revoke “{names.get(key_id, '')}”?",
            "Everything that uses it is refused from now on. This cannot be undone.",
            action="Revoke",
            on_confirm=lambda: visit.api.delete(f"{KEYS}/{key_id}"),
            success="The key is revoked.",
            on_success=table.refresh,
            is_dangerous=True,
        )

    table = DataTable(
        visit.query,
        [
            Column("Name", lambda row: Markup("<b>{}</b>").format(row["name"])),
            Column("Begins with", lambda row: Markup('<span class="mono">{}…</span>').format(row["keyHint"])),
            Column("Role", "role"),
            Column("Acts for", show_account, is_wide_only=True),
            build_made_column(visit),
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
        "Tokens that “adloom token” has made. One is listed once it was used, or made where the database is."
    ).classes("quiet")

    async def read(query: Mapping[str, str]) -> Json:
        answer = await visit.api.get(TOKENS, **query)
        await add_account_names(visit.api, answer["items"])
        return answer

    async def revoke(token_id: str) -> None:
        await visit.api.delete(f"{TOKENS}/{token_id}")
        notify_success("The token is revoked.")
        await table.refresh()

    table = DataTable(
        visit.query,
        [
            Column("For", lambda row: Markup("<b>{}</b>").format(row["subject"])),
            Column("Role", "role", is_wide_only=True),
            Column("Acts for", show_account, is_wide_only=True),
            Column("Made", lambda row: format_ago(row["issuedAt"], now=visit.now), sort="issuedAt"),
            *_use_columns(visit),
        ],
        read,
        on_action={"revoke": revoke},
        sort="-issuedAt",
        empty=(
            "terminal",
            "There are no tokens",
            "“adloom token” makes one, for 24 hours unless told otherwise.",
        ),
        caption="Tokens",
    )
    await table.show()


async def _create_key(visit: PageVisit, table: DataTable) -> None:
    async def save(form: Form) -> None:
        made = await visit.api.post(KEYS, form.read_values())
        show_secret_once(
            "Here is the key", "Copy it now: it is not shown again, and only its hash is kept.", made["key"]
        )
        await table.refresh()

    with open_form_dialog("New key", "Create", save, {"role": "viewer"}) as form:
        form.add_text("name", "Name", is_required=True, hint="What uses it, such as “nightly import”.")
        await add_role_fields(form, visit.api)


def show_secret_once(
    title: str, sentence: str, secret: str, button: tuple[str, Callable[[], Awaitable[None]]] | None = None
) -> None:
    """Show a secret that is not shown again; `button` is another way to hand it over."""
    with open_dialog(title) as dialog:
        dialog.props("persistent")
        ui.label(sentence)
        with add_div("al-secret"):
            ui.label(secret).classes("mono grow")
            add_copy_button(secret)
        with add_div("al-actions"):
            if button is not None:
                ui.button(button[0], icon="mail", on_click=button[1]).props("flat")
            ui.button("I have it", on_click=dialog.close).props("unelevated")


FIELD: Final = "accountId"
HINT: Final = "Type to search by name."


async def add_role_fields(form: Form, api: ApiClient, current: tuple[str, str] | None = None) -> None:
    """Add the role, and for whom it acts: a list of advertisers or of publishers. `current` is an id and its name."""
    options: dict[str, str] = dict([current]) if current else {}
    role = form.add_choice("role", "Role", strings.ROLES, is_required=True)
    field = form.add_choice(FIELD, "Acts for", options, is_clearable=True, is_searchable=True, hint=HINT)
    field.props(f"input-debounce={SEARCH_WAIT_MILLISECONDS}")

    async def offer(text: str = "") -> None:
        """Offer the accounts of the chosen role that a text finds; the chosen one stays."""
        chosen = {field.value: options[field.value]} if field.value in options else {}
        options.clear()
        options.update(chosen)
        if role.value in ACCOUNT_ROLES:
            found = await api.get_items(f"/admin/{role.value}s", search=text or None, pageSize=OPTIONS_MAX)
            options.update({row["id"]: row["name"] for row in found})
        field.set_options(options)
        field.set_visibility(role.value in ACCOUNT_ROLES)

    async def search(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        await offer(event.args if isinstance(event.args, str) else "")

    async def start_again() -> None:
        field.value = None
        await offer()

    field.on("input-value", search)
    await offer()
    role.on_value_change(start_again)


def show_account(row: Json) -> str | Markup:
    """Show for whom a row acts, as a link."""
    if row["accountId"] is None:
        return strings.NONE
    return Markup('<a href="/console/{}s/{}">{}</a>').format(
        row["role"], row["accountId"], row.get("accountName") or row["accountId"]
    )


async def add_account_names(api: ApiClient, rows: Sequence[Json]) -> None:
    """Add `accountName` to rows that have only its id."""
    for role in ACCOUNT_ROLES:
        own = [row for row in rows if row["role"] == role and row["accountId"]]
        names = await fetch_names(api, role.value, (row["accountId"] for row in own))
        for row in own:
            row["accountName"] = names[row["accountId"]]
