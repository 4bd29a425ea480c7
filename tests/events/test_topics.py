"""The topics: what counted, once, as the schema says, with its marks and without erased users."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from adloom.core.errors import UnavailableError
from adloom.core.ids import NO_USER
from adloom.core.money import Micros
from adloom.events.followers.counted import CountedEntry
from adloom.events.frequency.counts import FrequencyCounters
from adloom.events.ingest.conversion_reports import hash_name
from adloom.events.log.event import AuctionEntry, Mark, Served, Unsold
from adloom.events.log.stream import MemoryUse
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry
from adloom.events.topics.publish import (
    AD_SERVED,
    CLICK_TRACKED,
    CONVERSION_TRACKED,
    IMPRESSION_TRACKED,
    PART_MAX,
    TOPIC_PERCENT_MAX,
    TOPICS,
    TopicsProjection,
    TopicTrimmer,
    build_message,
    read_schema,
)
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import (
    BANNER,
    CAMPAIGN,
    NOW,
    PLACEMENT,
    REQUEST,
    UNKNOWN_ID,
    a_click,
    a_conversion,
    an_auction,
    an_impression,
)
from tests.events.catalog import insert_catalog
from tests.events.followed import USER, Followed, a_served, begin_topics, ids_of
from tests.events.json_schema import problems
from tests.support.for_each import for_each


@pytest.fixture
async def followed(pool: Pool, valkey: Valkey) -> Followed:
    await insert_catalog(pool)
    await begin_topics(valkey)
    return Followed(pool, valkey)


@pytest.fixture
def topics(followed: Followed) -> TopicsProjection:
    return TopicsProjection(followed.valkey, followed.lookup)


# --- payloads and schemas


@pytest.mark.parametrize("topic", TOPICS)
def test_a_schema_names_its_topic_and_version_and_allows_new_fields(topic: str) -> None:
    schema = json.loads(read_schema(topic))

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"urn:adloom:topic:{topic}"
    assert schema["title"] == topic
    assert schema["additionalProperties"] is True
    assert "v2" in schema["$comment"]


FULL: dict[str, Any] = {
    "request_id": REQUEST,
    "slot": 2,
    "user_id": USER,
    "country_code": "DE",
    "device_type": "mobile",
    "occurred_at": NOW - timedelta(microseconds=1),
}
EVENTS = [
    an_impression(),
    an_impression(**FULL),
    an_impression(campaign_id=None),
    a_click("c" * 128, **FULL),
    a_click(),
    a_conversion(),
    a_conversion(slot=255, value=Micros(0), currency="EUR"),
    a_served(),
    a_served(user_id=USER, slot=255, final_price=Micros(1_234_567), winning_ecpm=Micros(99_999_950)),
    an_auction(),
]


def test_an_unsold_auction_has_no_topic() -> None:
    assert build_message(CountedEntry("1784203200000-3", Unsold(held_at=NOW), None)) is None


@pytest.mark.parametrize("event", EVENTS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("marks", [(), ("crawler", "occurred_at_replaced")])
def test_a_published_message_matches_its_schema_and_has_all_fields(
    event: Any, marks: tuple[str, ...]
) -> None:
    counted = CountedEntry("1784203200000-3", event, getattr(event, "user_id", None), marks, not marks)

    message = build_message(counted)

    assert message is not None
    topic, payload = message

    schema = json.loads(read_schema(topic))
    assert list(problems(json.loads(payload), schema)) == []
    assert list(json.loads(payload)) == list(schema["properties"])
    assert schema["required"] == list(schema["properties"])


@pytest.mark.parametrize(
    "event", [a_served(user_id=NO_USER), an_auction(user_id=NO_USER)], ids=lambda one: type(one).__name__
)
def test_a_message_of_an_offer_without_a_user_has_no_user_id(event: Served | AuctionEntry) -> None:
    message = build_message(CountedEntry("1784203200000-3", event, event.user_id))

    assert message is not None
    assert json.loads(message.payload)["userId"] is None


@for_each(
    ("name", "wrong"),
    [
        ("adId", "no uuid"),
        ("adId", None),
        ("timestamp", "2026-11-15T12:00:00+05:30"),
        ("isValid", "yes"),
        ("slot", 256),
        ("slot", True),
        ("eventId", "first"),
        ("marks", [7]),
        ("correlationId", "c" * 129),
    ],
)
def test_a_value_that_violates_the_schema_is_reported(name: str, wrong: object) -> None:
    message = build_message(CountedEntry("1-1", an_impression(), None))
    assert message is not None
    payload = json.loads(message.payload)

    found = list(problems({**payload, name: wrong}, json.loads(read_schema(IMPRESSION_TRACKED))))

    assert len(found) == 1
    assert f"it.{name}" in found[0]


async def test_a_tracked_event_has_the_fields_of_the_seed_and_more(
    followed: Followed, topics: TopicsProjection
) -> None:
    await followed.record(an_impression("i", **FULL))

    await followed.apply(topics)

    [record] = await followed.records()
    assert await followed.topic(IMPRESSION_TRACKED) == [
        {
            "eventId": record.entry_id,
            "correlationId": "i",
            "adId": str(BANNER),
            "campaignId": str(CAMPAIGN),
            "placementId": str(PLACEMENT),
            "userId": str(USER),
            "timestamp": "2026-11-15T11:59:59.999999Z",
            "receivedAt": "2026-11-15T12:00:00Z",
            "requestId": str(REQUEST),
            "slot": 2,
            "countryCode": "DE",
            "deviceType": "mobile",
            "isValid": True,
            "isBillable": True,
            "marks": [],
        }
    ]


async def test_a_served_offer_has_the_fields_of_the_seed(
    followed: Followed, topics: TopicsProjection
) -> None:
    await followed.record(
        a_served(user_id=USER, final_price=Micros(1_230_000), winning_ecpm=Micros(2_000_000))
    )

    await followed.apply(topics)

    [record] = await followed.records()
    assert await followed.topic(AD_SERVED) == [
        {
            "eventId": record.entry_id,
            "auctionId": str(REQUEST),
            "slot": 0,
            "adId": str(BANNER),
            "campaignId": str(CAMPAIGN),
            "placementId": str(PLACEMENT),
            "placementType": "banner",
            "userId": str(USER),
            "finalPrice": 1.23,
            "winningEcpm": 2.0,
            "servedAt": "2026-11-15T12:00:00Z",
        }
    ]


# --- what is published


async def test_each_kind_of_event_goes_to_its_topic_in_the_order_of_the_log(
    followed: Followed, topics: TopicsProjection
) -> None:
    await followed.record(an_impression("a"), a_click("x"), an_impression("b"), a_served(), a_click("y"))

    result = await followed.apply(topics)

    assert result == BatchResult(counted=5)
    assert ids_of(await followed.topic(IMPRESSION_TRACKED)) == ["a", "b"]
    assert ids_of(await followed.topic(CLICK_TRACKED)) == ["x", "y"]
    assert len(await followed.topic(AD_SERVED)) == 1


async def test_a_repeated_report_is_published_once_and_an_uncounted_one_not_at_all(
    followed: Followed, topics: TopicsProjection
) -> None:
    of_unknown_banner = an_impression("gone", banner_id=REQUEST)
    await followed.record(an_impression("a"), an_impression("a"), a_click("a"), of_unknown_banner)
    first = await followed.apply(topics)
    await followed.record(an_impression("a", occurred_at=NOW - timedelta(hours=20)), an_impression("b"))

    second = await followed.apply(topics)

    assert ids_of(await followed.topic(IMPRESSION_TRACKED)) == ["a", "b"]
    assert ids_of(await followed.topic(CLICK_TRACKED)) == ["a"]
    assert (first, second) == (BatchResult(counted=2, repeated=2), BatchResult(counted=1, repeated=1))


async def test_a_conversion_is_published_once_with_what_is_known_of_its_click(
    followed: Followed, topics: TopicsProjection
) -> None:
    offer: dict[str, Any] = {"request_id": REQUEST, "slot": 0}
    await followed.record(a_conversion("early"), a_conversion("gone", campaign_id=UNKNOWN_ID))
    await followed.apply(topics)
    await followed.record(
        an_impression("i", **offer), a_click("c", **offer), a_conversion("late", currency="EUR")
    )
    await followed.record(a_conversion("late"), a_conversion("early"))

    result = await followed.apply(topics)

    early, late = await followed.topic(CONVERSION_TRACKED)
    assert result == BatchResult(counted=3, repeated=2)
    assert (early["isCounted"], early["marks"]) == (False, ["no_click"])
    assert late.pop("eventId") > early["eventId"]
    assert late == {
        "conversionId": hash_name("late").hex(),
        "adId": str(BANNER),
        "campaignId": str(CAMPAIGN),
        "placementId": str(PLACEMENT),
        "timestamp": "2026-11-15T12:00:00Z",
        "receivedAt": "2026-11-15T12:00:00Z",
        "requestId": str(REQUEST),
        "slot": 0,
        "value": 9.99,
        "currency": "EUR",
        "isCounted": True,
        "marks": [],
    }


async def test_a_marked_event_is_published_with_its_marks(
    followed: Followed, topics: TopicsProjection
) -> None:
    of_offer = {"request_id": REQUEST, "slot": 0}
    await followed.record(
        a_click("early", **of_offer, marks=(Mark.CRAWLER,)),
        an_impression("i", **of_offer, marks=(Mark.OCCURRED_AT_REPLACED,)),
        an_impression("again", **of_offer),
    )

    await followed.apply(topics)

    impressions, [click] = await followed.topic(IMPRESSION_TRACKED), await followed.topic(CLICK_TRACKED)
    assert [(one["isValid"], one["isBillable"], one["marks"]) for one in impressions] == [
        (True, True, ["occurred_at_replaced"]),
        (False, False, ["second_impression"]),
    ]
    assert (click["isValid"], click["isBillable"]) == (False, False)
    assert "crawler" in click["marks"]


async def test_an_event_without_a_token_is_valid_and_not_billable(
    followed: Followed, topics: TopicsProjection
) -> None:
    await followed.record(an_impression("a"))

    await followed.apply(topics)

    [payload] = await followed.topic(IMPRESSION_TRACKED)
    assert (payload["isValid"], payload["isBillable"]) == (True, False)


async def test_a_topic_is_trimmed_to_about_its_maximum_length(followed: Followed) -> None:
    topics = TopicsProjection(followed.valkey, followed.lookup, entries_max=200)
    for part in range(5):
        await followed.record(*(an_impression(f"{part}-{number}") for number in range(300)))
        await followed.apply(topics)

    # Valkey trims whole blocks of a hundred entries.
    assert 200 <= await followed.valkey.xlen(IMPRESSION_TRACKED) <= 300
    assert ids_of(await followed.topic(IMPRESSION_TRACKED))[-1] == "4-299"


async def test_a_topic_that_takes_too_much_memory_is_halved_however_long_it_is(valkey: Valkey) -> None:
    """The server itself trims 10,000 entries a call at most."""
    for _ in range(25):
        pipe = valkey.pipeline(transaction=False)
        for _ in range(1_000):
            pipe.xadd(IMPRESSION_TRACKED, {"event": b"x" * 200})
        await pipe.execute()
    used = await valkey.memory_usage(IMPRESSION_TRACKED)
    assert used
    twice_too_small = used * 100 // TOPIC_PERCENT_MAX // 2

    await TopicTrimmer(valkey).trim(MemoryUse(twice_too_small, twice_too_small))

    assert 25_000 // 4 <= await valkey.xlen(IMPRESSION_TRACKED) <= 25_000 // 4 + 100


async def test_a_topic_is_published_from_its_first_consumer_group_until_it_is_deleted(
    followed: Followed, topics: TopicsProjection
) -> None:
    await followed.valkey.delete(*TOPICS)
    await followed.record(an_impression("a"), a_click("x"), a_served())
    assert await followed.apply(topics) == BatchResult()
    assert not await followed.valkey.exists(*TOPICS)

    await followed.valkey.xgroup_create(CLICK_TRACKED, "reader", mkstream=True)
    await followed.record(an_impression("b"), a_click("y"), a_click("y"), a_served(slot=1))
    assert await followed.apply(topics) == BatchResult(counted=1, repeated=1)
    assert ids_of(await followed.topic(CLICK_TRACKED)) == ["y"]
    assert await followed.valkey.exists(*TOPICS) == 1


async def test_a_large_batch_is_published_in_parts_and_is_one_step_without_topics(
    followed: Followed, topics: TopicsProjection
) -> None:
    async def apply_many() -> tuple[BatchResult, int]:
        """Apply more than two parts; return in how many transactions."""
        await followed.append(*[a_served()] * (PART_MAX * 2 + 1))
        before = await followed.valkey.info("commandstats")
        result = await followed.apply(topics)
        after = await followed.valkey.info("commandstats")
        return result, after["cmdstat_exec"]["calls"] - before["cmdstat_exec"]["calls"]

    assert await apply_many() == (BatchResult(counted=PART_MAX * 2 + 1), 3)
    assert await followed.valkey.xlen(AD_SERVED) == PART_MAX * 2 + 1
    await followed.valkey.delete(*TOPICS)
    assert await apply_many() == (BatchResult(), 3)
    assert await apply_many() == (BatchResult(), 1)
    await begin_topics(followed.valkey)
    await apply_many()
    assert await followed.valkey.xlen(AD_SERVED) == PART_MAX * 2 + 1


class TopicsDeletedMeanwhile:
    """A look-up after which there are no topics, or something else in the place of one."""

    def __init__(self, followed: Followed, replaced: str | None = None) -> None:
        self._followed = followed
        self._replaced = replaced

    async def find_counted(self, records: Sequence[DecodedEntry]) -> list[CountedEntry]:
        if self._replaced is None:
            await self._followed.valkey.delete(*TOPICS)
        else:
            await self._followed.valkey.set(self._replaced, "something else")
        return await self._followed.lookup.find_counted(records)


async def test_a_topic_that_is_deleted_while_a_batch_is_published_stays_deleted(followed: Followed) -> None:
    await followed.record(an_impression("a"))

    await followed.apply(TopicsProjection(followed.valkey, TopicsDeletedMeanwhile(followed)))

    assert not await followed.valkey.exists(*TOPICS)


async def test_topics_of_length_zero_only_move_the_cursor(
    followed: Followed,
) -> None:
    await followed.record(an_impression("a"), a_served())

    await followed.apply(TopicsProjection(followed.valkey, followed.lookup, entries_max=0))

    assert await followed.apply(TopicsProjection(followed.valkey, followed.lookup)) == BatchResult()
    assert [await followed.topic(name) for name in TOPICS] == [[]] * len(TOPICS)


# --- once


async def test_a_commit_whose_answer_was_lost_publishes_once(
    followed: Followed, topics: TopicsProjection
) -> None:
    await followed.record(an_impression("a"), a_click("b"))
    records = await followed.records()
    cursor = records[-1].entry_id
    after = await topics.read_cursor()
    await topics.commit(records, after=after, cursor=cursor)

    with pytest.raises(CursorMovedError):
        await topics.commit(records, after=after, cursor=cursor)

    assert await topics.read_cursor() == cursor
    assert ids_of(await followed.topic(IMPRESSION_TRACKED)) == ["a"]
    assert ids_of(await followed.topic(CLICK_TRACKED)) == ["b"]


async def test_only_one_of_two_owners_publishes_the_same_batch(followed: Followed) -> None:
    await followed.record(*(an_impression(f"{number}") for number in range(20)))
    records = await followed.records()
    owners = [TopicsProjection(followed.valkey, followed.lookup) for _ in range(2)]
    afters = [await owner.read_cursor() for owner in owners]
    await owners[0].commit(records[:10], after=afters[0], cursor=records[9].entry_id)

    with pytest.raises(CursorMovedError):
        await owners[1].commit(records[:15], after=afters[1], cursor=records[14].entry_id)
    await owners[1].commit(records[10:], after=await owners[1].read_cursor(), cursor=records[-1].entry_id)

    assert ids_of(await followed.topic(IMPRESSION_TRACKED)) == [f"{number}" for number in range(20)]


@pytest.mark.parametrize("is_meanwhile", [False, True])
async def test_a_topic_key_of_another_type_stops_all_publication(
    followed: Followed, topics: TopicsProjection, *, is_meanwhile: bool
) -> None:
    await followed.record(an_impression("a"), a_click("b"))
    stopped = topics
    if is_meanwhile:
        stopped = TopicsProjection(followed.valkey, TopicsDeletedMeanwhile(followed, CLICK_TRACKED))
    else:
        await followed.valkey.set(CLICK_TRACKED, "something else")

    with pytest.raises(UnavailableError, match=CLICK_TRACKED):
        await followed.apply(stopped)

    assert await followed.topic(IMPRESSION_TRACKED) == []
    await followed.valkey.delete(CLICK_TRACKED)
    await followed.apply(topics)
    assert ids_of(await followed.topic(IMPRESSION_TRACKED)) == ["a"]


# --- erased users


async def test_an_erased_user_is_not_named(followed: Followed, topics: TopicsProjection) -> None:
    later = NOW + timedelta(seconds=1)
    await followed.record(
        an_impression("i", user_id=USER),
        a_click("c", user_id=USER),
        a_served(user_id=USER),
        a_served(user_id=USER, slot=1, served_at=later + timedelta(seconds=1)),
    )
    await followed.erase(USER, at=later)

    await followed.apply(topics)

    assert [one["userId"] for one in await followed.topic(IMPRESSION_TRACKED)] == [None]
    assert [one["userId"] for one in await followed.topic(CLICK_TRACKED)] == [None]
    # Events after the erasure may name the user again.
    assert [one["userId"] for one in await followed.topic(AD_SERVED)] == [None, str(USER)]


class ErasedMeanwhile:
    """A look-up after whose first answer a user is erased."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed
        self.asked = 0

    async def find_counted(self, records: Sequence[DecodedEntry]) -> list[CountedEntry]:
        found = await self._followed.lookup.find_counted(records)
        self.asked += 1
        if self.asked == 1:
            await self._followed.erase(USER)
            await FrequencyCounters(self._followed.valkey).erase_user(USER, NOW)
        return found


async def test_a_user_erased_between_look_up_and_publication_is_not_named(followed: Followed) -> None:
    lookup = ErasedMeanwhile(followed)
    await followed.record(an_impression("i", user_id=USER))

    await followed.apply(TopicsProjection(followed.valkey, lookup))

    assert [one["userId"] for one in await followed.topic(IMPRESSION_TRACKED)] == [None]
    assert lookup.asked == 2
