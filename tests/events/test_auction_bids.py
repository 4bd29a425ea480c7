"""Auctions in the log: bids are packed, and everything is bounded."""

from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.ids import BannerId, CampaignId
from adloom.core.money import Micros
from adloom.events.log.auction_bids import (
    BID_BYTES,
    BIDS_MAX,
    RecordedBid,
    pack_bid,
    unpack_bids,
)
from adloom.events.log.event import (
    CONTEXT_MAX,
    CONTEXT_VALUE_MAX,
    BidsUnderFloor,
    RemovedCandidates,
    UnreadableEntryError,
    decode_event,
    encode_event,
)
from adloom.events.ports import DecodedEntry
from adloom.events.tables.apply_batch import split_by_kind
from tests.events.builders import a_bid, an_auction

amounts = st.integers(0, 10**15).map(Micros)
bids = st.builds(
    RecordedBid,
    st.uuids().map(BannerId),
    st.uuids().map(CampaignId),
    amounts,
    st.booleans(),
    st.integers(0, 10**9),
    st.integers(0, 100_000),
    amounts,
    st.integers(0, 251),
)


def packed(bid: RecordedBid) -> bytes:
    pair = bid.banner_id.bytes + bid.campaign_id.bytes
    return pack_bid(pair, bid.bid, bid.quality, bid.is_per_click, bid.ctr, bid.ecpm, bid.outcome)


@given(several=st.lists(bids, max_size=20))
def test_bids_survive_packing_and_unpacking(several: list[RecordedBid]) -> None:
    assert list(unpack_bids(b"".join(map(packed, several)))) == several


def test_an_auction_survives_encoding_and_decoding() -> None:
    won, lost = an_auction(), an_auction(winner=None, bid_count=0, bids=b"", removed=(), context={})

    assert decode_event(encode_event(won)) == won
    assert decode_event(encode_event(lost)) == lost
    assert msgspec.msgpack.decode(encode_event(won))["k"] == "auction.v1"


def test_an_entry_of_a_version_without_bid_floors_can_be_read() -> None:
    entry = encode_event(an_auction(floors=(BidsUnderFloor(Micros(5), b"\2"),)))
    older = msgspec.msgpack.decode(entry)
    del older["fl"]

    assert decode_event(msgspec.msgpack.encode(older)) == an_auction()


@pytest.mark.parametrize(
    "fields",
    [
        {"bids": a_bid() * (BIDS_MAX + 1)},
        {"context": {str(number): "" for number in range(CONTEXT_MAX + 1)}},
        {"context": {"segment": "x" * (CONTEXT_VALUE_MAX + 1)}},
        {"placement_type": "t" * 51},
        {"removed": tuple(RemovedCandidates(str(number), 1) for number in range(251))},
        {"removed": (RemovedCandidates("r" * 51, 1),)},
        {"floors": tuple(BidsUnderFloor(Micros(number), b"") for number in range(BIDS_MAX + 1))},
        {"floors": (BidsUnderFloor(Micros(1), bytes(BIDS_MAX + 1)),)},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_an_entry_beyond_a_bound_is_unreadable(fields: dict[str, Any]) -> None:
    with pytest.raises(UnreadableEntryError):
        decode_event(encode_event(an_auction(**fields)))


def test_the_largest_entry_has_a_few_kilobytes() -> None:
    largest = an_auction(
        bids=a_bid() * BIDS_MAX,
        context={f"{number:02}" + "k" * 48: "v" * CONTEXT_VALUE_MAX for number in range(CONTEXT_MAX)},
        floors=(BidsUnderFloor(Micros(5_000_000), bytes(range(BIDS_MAX))),),
    )

    assert decode_event(encode_event(largest)) == largest
    assert len(encode_event(largest)) < BIDS_MAX * BID_BYTES + 5_000


def test_the_event_tables_ignore_an_auction() -> None:
    batch = split_by_kind([DecodedEntry("1-1", an_auction(UUID(int=1)))])

    assert batch.events == []
