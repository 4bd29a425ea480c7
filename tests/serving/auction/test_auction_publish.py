"""Bids, floors, scorings and frequency caps reach the index from the catalog, by changes as by a rebuild."""

from uuid import UUID

import pytest

from adloom.auction.bid import BidType
from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.core.money import Micros
from adloom.events.frequency.windows import Window
from adloom.resource.changes import Catalog, IndexedNoun
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.index.bid_block import BidBlock, Bidder
from adloom.serving.index.rows import FrequencyLimit

PLACEMENT = """
    INSERT INTO placements (public_id, slug, label, layout_type, delivery, placement_type, floor_cpm_micros)
    VALUES ($1, $2, 'Label', 'full_slider', 'auction', 'feed', 500000) RETURNING id
"""
ADVERTISER = "INSERT INTO advertisers (public_id, name) VALUES ($1, 'A') RETURNING id"
BANNER = (
    "INSERT INTO banners (public_id, title, primary_image_url) VALUES ($1, 'T', 'https://x/') RETURNING id"
)
CAMPAIGN = """
    INSERT INTO campaigns (public_id, name, status, advertiser_id, bid_type, bid_amount_micros)
    VALUES ($1, 'C', 'active', $2, 'cpc', 250000) RETURNING id
"""
LINK = "INSERT INTO campaign_placements (campaign_id, placement_id) VALUES ($1, $2)"
ASSIGN = "INSERT INTO banner_assignments (campaign_id, placement_id, banner_id) VALUES ($1, $2, $3)"
CAP = """
    INSERT INTO frequency_caps (public_id, banner_id, max_impressions_per_user, "window") VALUES ($1, $2, $3, $4)
"""


class AuctionCatalog:
    """One advertiser with a banner on two auctioned placements."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self.catalog = Catalog(pool, valkey)
        self.refresher = IndexRefresher(pool, valkey, SystemClock())
        self.placements: list[int] = []
        self.advertiser = self.banner = self.campaign = 0

    async def create(self) -> None:
        async with self.catalog.write() as write:
            insert = write.connection.fetchval
            self.placements = [await insert(PLACEMENT, an_id(), slug) for slug in ("first", "second")]
            self.advertiser = await insert(ADVERTISER, an_id())
            self.banner = await insert(BANNER, an_id())
            self.campaign = await insert(CAMPAIGN, an_id(), self.advertiser)
            for placement in self.placements:
                await write.connection.execute(LINK, self.campaign, placement)
                await write.connection.execute(ASSIGN, self.campaign, placement, self.banner)
                write.touch(IndexedNoun.PLACEMENT, placement)
            for window, most in (("Lifetime", 9), ("Hour", 2)):
                await write.connection.execute(CAP, an_id(), self.banner, most, window)
        await self.refresher.refresh()

    async def change(self, noun: IndexedNoun, key: int, sql: str) -> None:
        async with self.catalog.write() as write:
            await write.connection.execute(sql, key)
            write.touch(noun, key)
        await self.refresher.refresh()

    def bidders(self) -> list[Bidder]:
        return [
            one
            for placement in self.refresher.current.markets.get("feed", ())
            for block in placement.blocks
            if isinstance(block, BidBlock)
            for one in block.bidders
        ]


def an_id() -> UUID:
    return SystemIds().make()


@pytest.fixture
async def auctions(pool: Pool, valkey: Valkey) -> AuctionCatalog:
    auctions = AuctionCatalog(pool, valkey)
    await auctions.create()
    return auctions


async def test_bidders_are_read_from_the_catalog(auctions: AuctionCatalog) -> None:
    first, second = auctions.bidders()

    assert [one.placement_key for one in (first, second)] == auctions.placements
    assert (first.campaign_key, first.banner_key, first.payer) == (
        auctions.campaign,
        auctions.banner,
        auctions.advertiser,
    )
    assert (first.bid_type, first.bid, first.floor) == (BidType.CPC, Micros(250_000), Micros(500_000))
    assert first.frequency == (FrequencyLimit(Window.LIFETIME, 9), FrequencyLimit(Window.HOUR, 2))


async def test_an_incremental_update_equals_a_rebuild(
    auctions: AuctionCatalog, pool: Pool, valkey: Valkey
) -> None:
    steps = [
        (IndexedNoun.CAMPAIGN, auctions.campaign, "UPDATE campaigns SET bid_type = 'cpm' WHERE id = $1"),
        (
            IndexedNoun.CAMPAIGN,
            auctions.campaign,
            "UPDATE campaigns SET bid_amount_micros = 300000 WHERE id = $1",
        ),
        (IndexedNoun.CAMPAIGN, auctions.campaign, "UPDATE campaigns SET advertiser_id = NULL WHERE id = $1"),
        (
            IndexedNoun.BANNER,
            auctions.banner,
            "DELETE FROM frequency_caps WHERE banner_id = $1 AND \"window\" = 'Hour'",
        ),
        (
            IndexedNoun.PLACEMENT,
            auctions.placements[0],
            "UPDATE placements SET floor_cpm_micros = 1 WHERE id = $1",
        ),
        (
            IndexedNoun.PLACEMENT,
            auctions.placements[0],
            "UPDATE placements SET auction_scoring = 'learned' WHERE id = $1",
        ),
        (
            IndexedNoun.PLACEMENT,
            auctions.placements[0],
            "UPDATE placements SET placement_type = 'story' WHERE id = $1",
        ),
        (
            IndexedNoun.PLACEMENT,
            auctions.placements[1],
            "UPDATE placements SET delivery = 'direct' WHERE id = $1",
        ),
        (
            IndexedNoun.CAMPAIGN,
            auctions.campaign,
            "UPDATE campaigns SET bid_amount_micros = NULL WHERE id = $1",
        ),
    ]
    for noun, key, sql in steps:
        before = auctions.refresher.current
        await auctions.change(noun, key, sql)

        rebuilt = IndexRefresher(pool, valkey, SystemClock())
        await rebuilt.refresh()
        assert auctions.refresher.current == rebuilt.current, sql
        assert auctions.refresher.current != before, sql
        assert auctions.refresher.current.by_key != before.by_key, sql


async def test_a_market_has_its_top_bids_before_the_first_request(auctions: AuctionCatalog) -> None:
    now = SystemClock().now()
    market = auctions.refresher.markets.find_by_type(auctions.refresher.current, "feed", now=now)

    assert market is not None
    assert [len(top.members) for top in market.top_bids] == [2]


async def test_a_paused_campaign_is_out_of_every_market(auctions: AuctionCatalog) -> None:
    await auctions.change(
        IndexedNoun.CAMPAIGN, auctions.campaign, "UPDATE campaigns SET status = 'paused' WHERE id = $1"
    )

    assert auctions.bidders() == []
