"""Caches release a removed placement, whose blocks are megabytes."""

import gc

from adloom.core.ids import BannerId
from adloom.events.frequency.windows import Window
from adloom.serving.auction.events import AuctionedAds
from adloom.serving.eligibility.frequency_lookup import CappedBannerCache
from adloom.serving.index.index import Index, IndexedPlacement, replace_placements
from adloom.serving.index.rows import FrequencyLimit
from tests.serving.auction.marketplace import a_row, a_slot, an_index
from tests.support.rows import an_id

STAYS, GOES = 4_241, 4_242  # Keys that no other test uses.


def a_market_index() -> Index:
    caps = (FrequencyLimit(Window.DAY, 3),)
    rows = [
        a_row(1, "2", placement_key=STAYS, frequency=caps),
        a_row(2, "1", placement_key=GOES, frequency=caps),
    ]
    banners = [BannerId(an_id(2_001)), BannerId(an_id(2_002))]
    index = an_index(rows, a_slot(STAYS), a_slot(GOES))
    return replace_placements(
        index,
        version=2,
        gone=(),
        placements=(),
        banner_ids=index.banner_ids.with_more((one, None) for one in banners),
        campaign_ids=index.campaign_ids,
    )


def without(key: int, index: Index) -> Index:
    return replace_placements(
        index,
        version=index.version + 1,
        gone=[key],
        placements=(),
        banner_ids=index.banner_ids,
        campaign_ids=index.campaign_ids,
    )


def alive() -> set[int]:
    gc.collect()
    return {one.key for one in gc.get_objects() if isinstance(one, IndexedPlacement)} & {STAYS, GOES}


def test_the_cache_of_capped_banners_releases_a_removed_placement() -> None:
    index, cache = a_market_index(), CappedBannerCache()
    for slug in (b"slot-4241", b"slot-4242"):
        cache.get((index.by_slug[slug],), index)
    all_of_type = cache.get(index.markets["feed"], index)

    index = without(GOES, index)
    left = cache.get((index.by_key[STAYS],), index)

    assert (all_of_type.all_of_them.enough, left.all_of_them.enough) == ({1, 2}, {1})
    assert alive() == {STAYS}


def test_the_cache_of_auctioned_ads_releases_a_removed_placement() -> None:
    index, ads = a_market_index(), AuctionedAds()
    for number in (1, 2):
        ads.find_placement(BannerId(an_id(2_000 + number)), index)

    index = without(GOES, index)
    placement_id, _ = ads.find_placement(BannerId(an_id(2_001)), index)

    assert placement_id == index.by_key[STAYS].id
    assert alive() == {STAYS}
