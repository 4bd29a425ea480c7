"""The installation: processes, event log, dead letters, API keys, accounts, import and export, and settings."""

from collections.abc import Awaitable, Callable
from typing import Final

from adloom.console.components.layout import add_heading, add_tab_links
from adloom.console.page import PageVisit, register_page
from adloom.console.pages.system import access, accounts, processes, transfer
from adloom.console.shell import ADMINS

TABS: Final[dict[str, tuple[str, Callable[[PageVisit], Awaitable[None]]]]] = {
    "processes": ("Processes", processes.show_processes),
    "ledger": ("Ledger", processes.show_ledger),
    "dead": ("Dead letters", processes.show_dead_letters),
    "keys": ("API keys", access.show_keys),
    "tokens": ("Tokens", access.show_tokens),
    "accounts": ("Accounts", accounts.show_accounts),
    "transfer": ("Import and export", transfer.show_transfer),
    "settings": ("Settings", processes.show_settings),
}


@register_page("/console/system", title="System", roles=ADMINS)
async def show_system(visit: PageVisit) -> None:
    asked = visit.query.get("tab", "")
    tab = asked if asked in TABS else "processes"
    add_heading("System")
    labels = {name: label for name, (label, _) in TABS.items()}
    add_tab_links(visit.path, tab, labels, label="Parts of the system")
    await TABS[tab][1](visit)
