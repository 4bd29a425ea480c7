"""What things are called of which only the ids are known, for those of a page."""

from collections.abc import Iterable
from typing import Final

from adloom.console.client import ApiClient, ProblemError
from adloom.console.together import all_of

NAMES_MAX: Final = 120  # Of a page; more are not looked at one by one anyway.
SHORT: Final = 8
# Where a noun is read, and the field that is its name.
NOUNS: Final = {
    "campaign": ("/admin/campaigns", "name"),
    "banner": ("/admin/banners", "title"),
    "placement": ("/admin/placements", "label"),
    "advertiser": ("/admin/advertisers", "name"),
}


async def names_of(api: ApiClient, noun: str, ids: Iterable[str | None]) -> dict[str, str]:
    """Tell the names of some things; of what is gone, or somebody else's, the end of the id stands for it."""
    path, field = NOUNS[noun]
    wanted = sorted({one for one in ids if one})
    names = {one: short(one) for one in wanted}

    async def ask(one: str) -> None:
        try:
            names[one] = (await api.get(f"{path}/{one}"))[field]
        except ProblemError:
            return

    await all_of([ask(one) for one in wanted[:NAMES_MAX]])
    return names


def short(thing_id: str) -> str:
    """Show an id by its end, which differs most."""
    return f"…{thing_id[-SHORT:]}"
