"""For whom an account, a key or a token acts: chosen from a list by name, and shown as a link."""

from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup

from adloom.console import strings
from adloom.console.client import ApiClient, Json, fetch_names
from adloom.console.components.forms.fields import OPTIONS_MAX, SEARCH_WAIT_MILLISECONDS
from adloom.console.components.forms.form import Form
from adloom.core.caller import ACCOUNT_ROLES

FIELD: Final = "accountId"
HINT: Final = "Type to search by name."


async def add_role_fields(form: Form, api: ApiClient, current: tuple[str, str] | None = None) -> None:
    """Add the role, and for whom it acts: a list of advertisers or of publishers. `current` is an id and its name."""
    options: dict[str, str] = dict([current]) if current else {}
    role = form.choice("role", "Role", strings.ROLES, is_required=True)
    field = form.choice(FIELD, "Acts for", options, is_clearable=True, is_searchable=True, hint=HINT)
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
