"""Ten thousand auctions: the API's figures equal a recount of the log."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from adloom.core.clock import ManualClock
from adloom.core.ids import CampaignId, RequestId
from adloom.core.money import Micros, decimal_from_micros
from adloom.events.auction_log.store import AuctionTables
from adloom.events.log.auction_bids import LOST, REMOVED, WON, pack_bid, unpack_bids
from adloom.events.log.event import AuctionEntry, RemovedCandidates, encode_event
from adloom.events.projections.projection import BATCH_MAX
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import a_win, an_auction, an_impression
from tests.events.followed import Followed
from tests.support.builders import NOON, Json
from tests.support.control import Client

AUCTIONS = 10_000
PATH = "/api/v1/admin/auctions"
TYPES = ("feed", "story", "banner")
CAMPAIGNS = [CampaignId(UUID(int=1_000 + number)) for number in range(12)]


def a_market(seed: int) -> list[AuctionEntry]:
    chance = random.Random(seed)  # noqa: S311 - the same market in every run
    return [an_auction_of_chance(chance, number) for number in range(AUCTIONS)]


def an_auction_of_chance(chance: random.Random, number: int) -> AuctionEntry:
    """Some campaigns bid, each maybe with several ads; the highest bid wins, or none is high enough."""
    bids = sorted(((chance.randrange(1, 20_000_000), one) for one in random_campaigns(chance)), reverse=True)
    winner = bids[0] if bids else None
    outcomes = [WON] + [LOST] * len(bids)
    packed = [packed_of(ecpm, one, outcome) for (ecpm, one), outcome in zip(bids, outcomes, strict=False)]
    removed = chance.randrange(3)
    packed += [packed_of(1, chance.choice(CAMPAIGNS), REMOVED) for _ in range(removed)]
    return an_auction(
        RequestId(UUID(int=number)),
        user_id=UUID(int=chance.randrange(50)),
        placement_type=chance.choice(TYPES),
        held_at=NOON - timedelta(seconds=chance.randrange(3 * 86_400), microseconds=chance.randrange(10**6)),
        winner=None
        if winner is None
        else a_win(
            campaign_id=winner[1],
            ecpm=Micros(winner[0]),
            final_price=Micros(winner[0] // 2),
            charge=Micros(1),
        ),
        bid_count=len(bids),
        bids=b"".join(packed),
        removed=(RemovedCandidates("pacing", removed),) if removed else (),
    )


def random_campaigns(chance: random.Random) -> Sequence[CampaignId]:
    return chance.choices(CAMPAIGNS, k=chance.randrange(5)) if chance.random() < 0.9 else ()


def packed_of(ecpm: int, campaign_id: CampaignId, outcome: int) -> bytes:
    pair = UUID(int=7).bytes + campaign_id.bytes
    return pack_bid(pair, Micros(ecpm), 10_000, False, 20_000_000, ecpm, outcome)  # noqa: FBT003


def recounted(auctions: Iterable[AuctionEntry]) -> Json:
    counted = list(auctions)
    wins = [decimal_from_micros(one.winner.ecpm) for one in counted if one.winner]
    return figures(len(counted), wins, sum(one.bid_count for one in counted))


def figures(auctions: int, wins: Sequence[Decimal], bids: int) -> Json:
    return {
        "totalAuctions": auctions,
        "averageWinRate": round(100 * len(wins) / auctions, 4),
        "averageeCPM": float(round(sum(wins, Decimal(0)) / len(wins), 4)) if wins else 0.0,
        "totalBidsPlaced": bids,
    }


def recounted_by_campaign(auctions: Iterable[AuctionEntry]) -> dict[str, Json]:
    took_part: Counter[CampaignId] = Counter()
    bids: Counter[CampaignId] = Counter()
    wins: defaultdict[CampaignId, list[Decimal]] = defaultdict(list)
    for auction in auctions:
        taking_part = [bid.campaign_id for bid in unpack_bids(auction.bids) if bid.outcome != REMOVED]
        took_part.update(set(taking_part))
        bids.update(taking_part)
        if auction.winner:
            wins[auction.winner.campaign_id].append(decimal_from_micros(auction.winner.ecpm))
    return {str(one): figures(took_part[one], wins[one], bids[one]) for one in took_part}


async def apply_all(followed: Followed, pool: Pool) -> list[AuctionEntry]:
    """Apply the log in batches, and return all its auctions, each once."""
    tables = AuctionTables(pool, clock=ManualClock(NOON), kept_days=7)
    records = await followed.records()
    for start in range(0, len(records), BATCH_MAX):
        batch = records[start : start + BATCH_MAX]
        await tables.commit(batch, after=await tables.read_cursor(), cursor=batch[-1].entry_id)
    found = {one.event.auction_id: one.event for one in records if isinstance(one.event, AuctionEntry)}
    return list(found.values())


async def read(client: Client, path: str, **params: Any) -> Json:
    answer = await client.get(f"{PATH}{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def parts(client: Client, by: str) -> dict[Any, Json]:
    items = (await read(client, "/statistics/breakdown", groupBy=by))["items"]
    key = {"campaign": "campaignId"}.get(by, by)
    return {item.pop(key): item for item in items}


async def test_all_figures_equal_a_recount_of_the_log(admin: Client, pool: Pool, valkey: Valkey) -> None:
    followed = Followed(pool, valkey)
    market = a_market(seed=6)
    for start in range(0, AUCTIONS, 1_000):
        # Some are repeated, with other events between them.
        some = market[start : start + 1_000]
        await followed.ledger.append([encode_event(one) for one in (*some, *some[:20], an_impression())])

    auctions = await apply_all(followed, pool)

    assert len(auctions) == AUCTIONS
    assert await read(admin, "/statistics") == recounted(auctions)
    by_type = {kind: recounted(one for one in auctions if one.placement_type == kind) for kind in TYPES}
    assert await parts(admin, "placementType") == by_type
    for kind in TYPES:
        assert await read(admin, "/statistics", placementType=kind) == by_type[kind]
    assert await parts(admin, "campaign") == recounted_by_campaign(auctions)
    hours: defaultdict[str, list[AuctionEntry]] = defaultdict(list)
    for one in auctions:
        hours[hour_of(one.held_at)].append(one)
    assert await parts(admin, "hour") == {hour: recounted(some) for hour, some in hours.items()}
    day = [one for one in auctions if one.held_at.date() == NOON.date()]
    assert await read(admin, "/statistics", startDate="2026-11-15", endDate="2026-11-15") == recounted(day)
    user_id = UUID(int=7)
    page = await read(admin, "", userId=str(user_id))
    assert page["totalCount"] == sum(one.user_id == user_id for one in auctions)
    first = auctions[0]
    assert (await read(admin, f"/{first.auction_id}"))["bidCount"] == first.bid_count


def hour_of(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H}:00:00Z"
