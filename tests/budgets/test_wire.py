"""The encoding of messages: every message can be decoded, and unreadable ones are skipped."""

from datetime import UTC, date, datetime
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.addresses import make_campaign_address, make_session_topic
from adloom.budgets.messages import (
    AdvertiserExhausted,
    AdvertiserRestored,
    BudgetVerdict,
    CampaignExhausted,
    CampaignRestored,
    LeaseAnswer,
    LeaseUsage,
    OpenWindow,
    Recall,
    SpendUpdate,
)
from adloom.budgets.transport.wire import (
    BudgetEnvelope,
    BudgetMessage,
    BudgetUpdate,
    SessionEnds,
    SessionHeartbeat,
    SessionVoid,
    decode_envelopes,
    decode_updates,
    encode_envelopes,
    encode_updates,
    make_session_address,
    make_session_channel,
    make_topic_channel,
)
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.core.money import Micros
from tests.support.for_each import for_each

CAMPAIGN, ADVERTISER = CampaignId(UUID(int=7)), AdvertiserId(UUID(int=1))
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
USAGE = LeaseUsage(session=2**47, report=3, lease=9, given=((1, 2), (3, 4)), want=Micros(5), cost=Micros(1))
ANSWER = LeaseAnswer(
    campaign_id=CAMPAIGN,
    session=2**47,
    report=3,
    lease=9,
    granted=Micros(7),
    given=Micros(2),
    ends_at=NOON,
    verdict=BudgetVerdict.PACING,
)
SPEND = SpendUpdate(
    campaign_id=CAMPAIGN,
    advertiser_id=None,
    day=date(2026, 11, 15),
    window=2,
    daily_budget=None,
    total_budget=Micros(9),
    spent_window=Micros(1),
    spent_today=Micros(2),
    spent_total=Micros(3),
    held=Micros(4),
    leased=Micros(5),
    at=NOON,
)


@pytest.mark.parametrize(
    "message",
    [
        USAGE,
        OpenWindow(reason="a test"),
        SessionHeartbeat(session=1, process="delivery-1"),
        SessionEnds(session=1),
    ],
)
def test_a_message_is_decoded_as_it_was_encoded(message: BudgetMessage) -> None:
    envelope = BudgetEnvelope(make_campaign_address(CAMPAIGN, ADVERTISER), message)

    assert decode_envelopes(encode_envelopes([envelope, envelope])) == [envelope, envelope]


@for_each(
    "update",
    [
        ANSWER,
        SPEND,
        Recall(campaign_id=CAMPAIGN, session=1),
        SessionVoid(session=1),
        CampaignExhausted(campaign_id=CAMPAIGN, verdict=BudgetVerdict.DAILY_BUDGET, at=NOON),
        CampaignRestored(campaign_id=CAMPAIGN, at=NOON),
        AdvertiserExhausted(advertiser_id=ADVERTISER, at=NOON),
        AdvertiserRestored(advertiser_id=ADVERTISER, at=NOON),
    ],
)
def test_an_update_is_decoded_as_it_was_encoded(update: BudgetUpdate) -> None:
    assert decode_updates(encode_updates([update, ANSWER])) == [update, ANSWER]


def test_messages_of_a_newer_version_are_skipped_and_the_others_decoded() -> None:
    to = make_session_address(1)
    beat = SessionHeartbeat(session=1, process="delivery-1")
    envelopes = msgspec.msgpack.encode([[to, {"type": "sing.v9"}], [to, beat]])
    updates = msgspec.msgpack.encode([{"type": "sing.v9"}, SessionVoid(session=1)])

    assert decode_envelopes(envelopes) == [BudgetEnvelope(to, beat)]
    assert decode_updates(updates) == [SessionVoid(session=1)]


@given(st.binary(max_size=100))
def test_random_bytes_decode_to_nothing(data: bytes) -> None:
    assert decode_envelopes(data) == []
    assert decode_updates(data) == []


def test_each_topic_has_a_channel() -> None:
    assert make_topic_channel("spend") == "adloom:brain:spend"
    assert make_topic_channel(make_session_topic(5)) == make_session_channel(5) == "adloom:brain:session:5"
