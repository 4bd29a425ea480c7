"""The placements of one page: no banner twice while another could take its place.

What the page shows already counts as taken. Each placement gets its first banner before any gets its second. A placement that finds all its banners taken
asks their placements to take another one, and so on: the result shows as many different banners as possible.
Only a placement that would stay empty repeats a banner, and for a visitor with an id none that has a frequency cap: a
page does not count what is left of it. Evergreens stand in only if a placement has no other candidate, not if its
candidates are taken elsewhere on the page.
"""

# pure

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

import msgspec

from adloom.serving.index.index import Candidate

SHOWN: Final = -1  # In place of a placement's number: who shows a banner already, and gives it to nobody.


class PageChoice(msgspec.Struct, frozen=True):
    """The candidates of a placement in fill order, each banner once."""

    candidates: Sequence[Candidate]
    slots_max: int


def has_no_repeats(answers: Iterable[Sequence[Candidate]], shown: Set[int] = frozenset()) -> bool:
    """Whether placements that were decided one by one make a page already."""
    banners = [one.banner_key for answer in answers for one in answer]
    return len(banners) == len(set(banners)) and shown.isdisjoint(banners)


def fill_page(
    choices: Sequence[PageChoice], *, names_user: bool = False, shown: Iterable[int] = ()
) -> list[list[Candidate]]:
    holders = _match_banners(choices, shown)
    page: list[list[Candidate]] = []
    for number, choice in enumerate(choices):
        own = [one for one in choice.candidates if holders.get(one.banner_key) == number]
        page.append(own or _repeat(choice, names_user=names_user))
    return page


def _repeat(choice: PageChoice, *, names_user: bool) -> list[Candidate]:
    found = [one for one in choice.candidates if not (names_user and one.frequency)]
    return found[: choice.slots_max]


def _match_banners(choices: Sequence[PageChoice], shown: Iterable[int]) -> Mapping[int, int]:
    """Assign banners to placements: a maximum matching, slot by slot."""
    holders = dict.fromkeys(shown, SHOWN)
    wanting = list(range(len(choices)))
    filled = 0
    while wanting:
        wanting = [
            number for number in wanting if _assign_one_more(number, choices, holders, {number, SHOWN})
        ]
        filled += 1
        wanting = [number for number in wanting if filled < choices[number].slots_max]
    return holders


def _assign_one_more(
    number: int, choices: Sequence[PageChoice], holders: dict[int, int], asked: set[int]
) -> bool:
    banners = [one.banner_key for one in choices[number].candidates]
    for banner in banners:
        if banner not in holders:
            holders[banner] = number
            return True
    for banner in banners:
        holder = holders[banner]
        if holder in asked:
            continue
        asked.add(holder)
        if _assign_one_more(holder, choices, holders, asked):
            holders[banner] = number
            return True
    return False
