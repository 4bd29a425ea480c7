"""The record of removed candidates: listed with a reason as far as there is room, and counted."""

from collections import Counter
from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import pytest

from adloom.auction.bid import BidType
from adloom.auction.learned import LEARNED
from adloom.auction.score import HEURISTIC
from adloom.core.ids import BannerId
from adloom.core.money import Micros
from adloom.events.frequency.windows import Window
from adloom.events.log.auction_bids import BIDS_MAX, REMOVED, unpack_bids
from adloom.serving.auction.bid_record import (
    FLOOR,
    FREQUENCY_CAP,
    LIMITS,
    NOT_HELD,
    SCHEDULE,
    TARGETING,
    AuctionInput,
    BidRecord,
    BidRecorder,
)
from adloom.serving.index.rows import AssignmentRow, FrequencyLimit
from adloom.targeting.rules import parse_rule
from tests.auction.bids import units
from tests.serving.auction.marketplace import NOON, Marketplace, a_row, a_slot
from tests.serving.auction.test_learned_auctions import train_learned_policy
from tests.support.contexts import a_context
from tests.support.for_each import for_each

ONE_A_DAY = (FrequencyLimit(Window.DAY, 1),)
ELSEWHERE = (parse_rule("country", "in", ["AQ"]),)
LATER = {"starts_at": NOON + timedelta(hours=1)}


def record_bids(market: Marketplace, seen_enough: frozenset[int], unreserved: frozenset[int]) -> BidRecord:
    found = market.find_market()
    scorers = market.scorers(found)
    contexts = (a_context(),) * len(found.zones)
    auction = AuctionInput(found.plan_scan(scorers), contexts, scorers, seen_enough, unreserved)
    return BidRecorder(market.states.find_reason).record(auction, NOON)


def reasons_in(record: BidRecord) -> dict[BannerId, str | None]:
    """Return why listed candidates were removed; None for those that took part."""
    names = [one.reason for one in record.removed]
    return {
        bid.banner_id: names[bid.outcome - REMOVED] if bid.outcome >= REMOVED else None
        for bid in unpack_bids(record.bids)
    }


class LargeMarket:
    """Many candidates, each with a known reason for its removal, or None if it takes part."""

    def __init__(self, *, taking_part: int) -> None:
        kinds: dict[str | None, dict[str, Any]] = {
            None: {},
            "targeting:country": {"rules": ELSEWHERE},
            "campaign_dates": LATER,
            "pacing": {},
            NOT_HELD: {},
            FREQUENCY_CAP: {"frequency": ONE_A_DAY},
            FLOOR: {},
        }
        counts = {kind: taking_part if kind is None else 50 for kind in kinds}
        self.rows: list[AssignmentRow] = []
        self.reasons: dict[BannerId, str | None] = {}
        self.keys: dict[str | None, list[int]] = {}
        for kind, fields in kinds.items():
            for _ in range(counts[kind]):
                number = len(self.rows) + 1
                row = a_row(number, "0.4" if kind == FLOOR else str(1 + number % 7), **fields)
                self.rows.append(row)
                self.reasons[row.banner_id] = kind
                self.keys.setdefault(kind, []).append(number)
        self.market = Marketplace(*self.rows, slots=[a_slot(floor="0.5")])
        self.market.states.mark_changed(dict.fromkeys(self.keys["pacing"], "pacing"))

    def record(self) -> BidRecord:
        return record_bids(self.market, frozenset(self.keys[FREQUENCY_CAP]), frozenset(self.keys[NOT_HELD]))


def test_space_left_by_bids_is_filled_with_removed_candidates() -> None:
    large_market = LargeMarket(taking_part=10)

    record = large_market.record()

    listed = reasons_in(record)
    assert (record.bid_count, record.examined_count, len(listed)) == (10, 310, BIDS_MAX)
    assert listed == {banner: large_market.reasons[banner] for banner in listed}
    assert sum(reason is None for reason in listed.values()) == 10


def test_unlisted_candidates_are_counted_by_the_step_that_removed_them() -> None:
    record = LargeMarket(taking_part=10).record()

    counts = {one.reason: one.count for one in record.removed}
    kinds = Counter[str]()
    for reason, count in counts.items():
        kinds[
            {
                "targeting:country": TARGETING,
                "campaign_dates": SCHEDULE,
                "pacing": LIMITS,
                NOT_HELD: LIMITS,
            }.get(reason, reason)
        ] += count
    assert kinds == {TARGETING: 50, SCHEDULE: 50, LIMITS: 100, FREQUENCY_CAP: 50, FLOOR: 50}
    by_name = Counter(reason for reason in reasons_in(record).values() if reason is not None)
    assert all(by_name[reason] <= counts[reason] for reason in by_name)


def test_removed_candidates_are_only_counted_if_bids_leave_no_room() -> None:
    record = LargeMarket(taking_part=BIDS_MAX).record()

    assert set(reasons_in(record).values()) == {None}
    assert {one.reason: one.count for one in record.removed} == {
        SCHEDULE: 50,
        LIMITS: 100,
        TARGETING: 50,
        FREQUENCY_CAP: 50,
        FLOOR: 50,
    }


@pytest.mark.parametrize("scoring", [HEURISTIC, LEARNED])
@for_each("seed", range(4))
def test_bids_under_their_floor_are_listed_once_with_the_floor(seed: int, scoring: str) -> None:
    chance = Random(seed)  # noqa: S311 - not a secret
    slots = [a_slot(key, floor=floor, scoring=scoring) for key, floor in enumerate(("1", "3"), 1)]
    rows = [
        a_row(
            number,
            Micros(chance.randint(1, 30) * 10_000),
            bid_type=chance.choice(list(BidType)),
            placement_key=chance.choice((1, 2)),
        )
        for number in range(1, 401)
    ]
    market = Marketplace(*rows, slots=slots, policies={LEARNED: train_learned_policy(chance, 400, 2_000)})
    floors = {row.banner_id: units("1" if row.placement_key == 1 else "3") for row in rows}

    record = record_bids(market, frozenset(), frozenset())

    bids = list(unpack_bids(record.bids))
    assert len({bid.banner_id for bid in bids}) == len(bids) == BIDS_MAX
    assert record.bid_count < BIDS_MAX
    for bid, reason in zip(bids, reasons_in(record).values(), strict=True):
        assert reason == (FLOOR if bid.ecpm < floors[bid.banner_id] else None)
    recorded_floors = {place: one.floor for one in record.floors for place in one.places}
    under = [place for place, bid in enumerate(bids) if bid.outcome >= REMOVED]
    assert recorded_floors == {place: floors[bids[place].banner_id] for place in under}
    assert [msgspec.structs.astuple(one) for one in record.removed] == [(FLOOR, 400 - record.bid_count)]
