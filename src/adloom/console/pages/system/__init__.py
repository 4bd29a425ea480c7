"""The installation: processes, event log, dead letters, API keys, accounts and settings."""

from collections.abc import Awaitable, Callable
from typing import Final

from adloom.console import strings
from adloom.console.components.layout import heading, tab_links
from adloom.console.page import PageVisit, page
from adloom.console.pages.system.access import show_accounts, show_keys
from adloom.console.pages.system.processes import (
    show_dead_letters,
    show_ledger,
    show_processes,
    show_settings,
)
from adloom.console.shell import ADMINS

PARTS: Final[dict[str, Callable[[PageVisit], Awaitable[None]]]] = {
    "processes": show_processes,
    "ledger": show_ledger,
    "dead": show_dead_letters,
    "keys": show_keys,
    "accounts": show_accounts,
    "settings": show_settings,
}


@page("/console/system", title="System", roles=ADMINS)
async def system(visit: PageVisit) -> None:
    tab = visit.query.get("tab", "processes")
    tab = tab if tab in PARTS else "processes"
    heading("System")
    tab_links(visit.path, tab, strings.SYSTEM_TABS, label="Parts of the system")
    await PARTS[tab](visit)
