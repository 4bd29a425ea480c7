"""Events in the log, and which clock decides when they happened."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.events.log.event import (
    OCCURRED_AGE_MAX,
    OCCURRED_AHEAD_MAX,
    Click,
    Event,
    Impression,
    Mark,
    UnreadableEntryError,
    decode_event,
    encode_event,
    resolve_occurred_at,
)
from tests.events.builders import NOW, REQUEST, a_click, an_impression

texts = st.none() | st.text(max_size=128)
moments = st.datetimes(timezones=st.just(UTC))
common = {
    "correlation_id": st.text(min_size=1, max_size=128),
    "banner_id": st.uuids(),
    "placement_id": st.uuids(),
    "campaign_id": st.none() | st.uuids(),
    "occurred_at": moments,
    "received_at": moments,
    "request_id": st.none() | st.uuids(),
    "session_id": texts,
    "user_id": st.none() | st.uuids(),
    "device_type": texts,
    "country_code": texts,
    "page_url": texts,
    "marks": st.lists(st.sampled_from(Mark)).map(tuple),
}
events: st.SearchStrategy[Event] = st.builds(Impression, referrer_url=texts, **common) | st.builds(
    Click, destination_url=texts, **common
)


@given(event=events)
def test_an_event_survives_encoding_and_decoding(event: Event) -> None:
    assert decode_event(encode_event(event)) == event


def test_an_entry_carries_its_kind_and_version() -> None:
    assert msgspec.msgpack.decode(encode_event(an_impression()))["k"] == "impression.v1"
    assert msgspec.msgpack.decode(encode_event(a_click()))["k"] == "click.v1"


def test_an_entry_of_a_newer_version_with_another_field_can_be_read() -> None:
    fields = msgspec.msgpack.decode(encode_event(a_click()))

    assert decode_event(msgspec.msgpack.encode({**fields, "new": 1})) == a_click()


NAIVE = encode_event(an_impression(received_at=NOW.replace(tzinfo=None)))


@pytest.mark.parametrize(
    "entry", [b"", b"\xff", b"{}", b"\x81\xa1k\xadimpression.v9", b"\x91" * 100_000, NAIVE]
)
def test_an_entry_that_is_not_an_event_is_unreadable(entry: bytes) -> None:
    with pytest.raises(UnreadableEntryError):
        decode_event(entry)


@given(
    reported=st.datetimes(timezones=st.timezones())
    | st.datetimes(timezones=st.sampled_from([timezone(timedelta(hours=h)) for h in (-14, 0, 14)]))
)
def test_the_resolved_time_is_always_near_now(reported: datetime) -> None:
    occurred_at, marks = resolve_occurred_at(reported, now=NOW)

    assert NOW - OCCURRED_AGE_MAX <= occurred_at <= NOW + OCCURRED_AHEAD_MAX
    assert occurred_at.tzinfo is UTC
    assert (occurred_at == reported) or (marks == (Mark.OCCURRED_AT_REPLACED,) and occurred_at == NOW)


@given(age=st.timedeltas(min_value=-OCCURRED_AHEAD_MAX, max_value=OCCURRED_AGE_MAX))
def test_a_time_within_the_bounds_is_accepted(age: timedelta) -> None:
    assert resolve_occurred_at(NOW - age, now=NOW) == (NOW - age, ())


@pytest.mark.parametrize(
    "age", [OCCURRED_AGE_MAX + timedelta(microseconds=1), -OCCURRED_AHEAD_MAX - timedelta(microseconds=1)]
)
def test_a_time_just_outside_the_bounds_is_replaced_and_marked(age: timedelta) -> None:
    assert resolve_occurred_at(NOW - age, now=NOW) == (NOW, (Mark.OCCURRED_AT_REPLACED,))


def test_an_event_without_a_time_happened_now() -> None:
    assert resolve_occurred_at(None, now=NOW) == (NOW, ())


def test_only_an_event_of_an_unexpired_offer_is_billable() -> None:
    assert not an_impression().is_billable
    assert an_impression(request_id=REQUEST).is_billable
    assert an_impression(request_id=REQUEST, marks=(Mark.OCCURRED_AT_REPLACED,)).is_billable
    assert not an_impression(request_id=REQUEST, marks=(Mark.TOKEN_EXPIRED,)).is_billable
