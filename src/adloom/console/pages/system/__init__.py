"""The installation itself: what runs, how far the ledger is, who may come in, with which settings."""

from collections.abc import Awaitable, Callable
from typing import Final

from adloom.console.components.heading import heading
from adloom.console.components.tabs import tab_links
from adloom.console.navigation import ADMINS
from adloom.console.page import Visit, page
from adloom.console.pages.system.accounts import show_accounts
from adloom.console.pages.system.dead_letters import show_dead_letters
from adloom.console.pages.system.keys import show_keys
from adloom.console.pages.system.ledger import show_ledger
from adloom.console.pages.system.processes import show_processes
from adloom.console.pages.system.settings import show_settings
from adloom.console.words import system as words

PARTS: Final[dict[str, Callable[[Visit], Awaitable[None]]]] = {
    "processes": show_processes,
    "ledger": show_ledger,
    "dead": show_dead_letters,
    "keys": show_keys,
    "accounts": show_accounts,
    "settings": show_settings,
}


@page("/console/system", title=words.TITLE, roles=ADMINS)
async def system(visit: Visit) -> None:
    """Show one part of the system."""
    tab = visit.query.get("tab", "processes")
    tab = tab if tab in PARTS else "processes"
    with heading(words.TITLE):
        pass
    tab_links(visit.path, tab, words.TABS, label=words.PARTS)
    await PARTS[tab](visit)
