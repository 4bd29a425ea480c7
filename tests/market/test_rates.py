"""Pages and going rates by category."""

from collections.abc import Sequence
from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.caller import Role
from adloom.core.ids import AdvertiserId
from adloom.core.money import Micros
from adloom.market.rates.rates import (
    ADVERTISERS_MIN,
    STEPS,
    Band,
    CategoryBid,
    PageCount,
    find_band,
    rate_categories,
)
from adloom.runtime.postgres import Pool
from tests.support.builders import NOON
from tests.support.control import ControlPlane, control
from tests.support.pages import insert_site, write_page

__all__ = ["control"]

PARENTS = {"cats": ("pets",), "dogs": ("pets",)}
ONE = 1_000_000


def ancestors(category: str) -> Sequence[str]:
    return PARENTS.get(category, ())


def a_bid(advertiser: int, cpm: float, *categories: str) -> CategoryBid:
    return CategoryBid(AdvertiserId(UUID(int=advertiser)), Micros(round(cpm * ONE)), categories)


bids = st.lists(
    st.builds(a_bid, st.integers(1, 6), st.floats(0, 300, allow_nan=False), st.just("cats")), max_size=20
)


@given(bids)
def test_a_band_has_round_ends_around_the_middle_and_names_nobody(given_bids: list[CategoryBid]) -> None:
    band = find_band(given_bids)

    is_known = len({one.advertiser_id for one in given_bids}) >= ADVERTISERS_MIN
    assert (band is not None) is is_known
    if band is not None:
        middle = sorted(one.cpm for one in given_bids)[len(given_bids) // 2]
        assert band.low in STEPS
        assert band.low <= middle
        assert band.high is None or (band.high in STEPS and band.low < band.high and middle <= band.high)


def test_pages_count_once_for_a_category_and_all_above_it() -> None:
    counts = [PageCount(1, ("cats", "dogs"), 3), PageCount(2, ("cats",), 2)]

    rates = {one.id: (one.pages, one.sites) for one in rate_categories(counts, [], ancestors)}

    assert rates == {"pets": (5, 2), "cats": (5, 2), "dogs": (3, 1)}


def test_who_wants_a_category_above_competes_too_and_once() -> None:
    competing = [
        a_bid(1, 1, "pets"),
        a_bid(2, 2, "cats"),
        a_bid(3, 2.5, "cats", "pets"),
        a_bid(4, 90, "dogs"),
    ]

    rates = {one.id: one for one in rate_categories([], competing, ancestors)}

    assert {name: one.campaigns for name, one in rates.items()} == {"pets": 2, "cats": 3, "dogs": 3}
    assert rates["pets"].band is None
    assert rates["cats"].band == Band(Micros(ONE), Micros(3 * ONE))


def test_who_excludes_a_category_or_one_above_does_not_compete_for_it() -> None:
    excluding = [
        msgspec.structs.replace(a_bid(1, 1, "pets"), excluded=("dogs",)),
        msgspec.structs.replace(a_bid(2, 1, "cats"), excluded=("pets",)),
    ]

    rates = {
        one.id: one.campaigns for one in rate_categories([PageCount(1, ("dogs",), 1)], excluding, ancestors)
    }

    assert rates == {"pets": 1, "cats": 1, "dogs": 0}


async def test_an_advertiser_reads_what_there_is_to_buy(control: ControlPlane, pool: Pool) -> None:
    site_id = await insert_site(pool, "magazine.test")
    await write_page(pool, site_id, "magazine.test/a", at=NOON, categories={"424": 0.9})

    async with control.acting_as(Role.ADVERTISER) as advertiser:
        answer = await advertiser.get("/admin/market/categories")

    assert answer.status_code == 200, answer.text
    rates = {one["id"]: one for one in answer.json()["items"]}
    assert rates.keys() == {"424", "422"}
    assert (rates["424"]["path"], rates["424"]["pages"], rates["424"]["lowCpm"]) == (
        ["Pets", "Cats"],
        1,
        None,
    )
