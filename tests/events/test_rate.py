"""Floods: never marked before the limit of a minute, always after it, and bounded in memory."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from adloom.events.ingest.ivt.flags import MINUTE, AddressMinute, FloodCounter
from tests.events.builders import NOW

addresses = st.sampled_from([b"one", b"another", b"third"])
steps = st.timedeltas(min_value=timedelta(), max_value=timedelta(seconds=40))
reports = st.lists(st.tuples(addresses, steps), max_size=60)
limits = st.integers(1, 8)


def in_order(reported: Iterable[tuple[bytes, timedelta]]) -> list[tuple[bytes, datetime]]:
    now = NOW
    arrived: list[tuple[bytes, datetime]] = []
    for address, step in reported:
        now += step
        arrived.append((address, now))
    return arrived


@given(reports, limits)
def test_no_event_is_marked_unless_the_limit_was_exceeded_within_a_minute(
    reported: list[tuple[bytes, timedelta]], limit: int
) -> None:
    counter = FloodCounter(limit)
    arrived = in_order(reported)

    for place, (address, now) in enumerate(arrived):
        within = [at for other, at in arrived[: place + 1] if other == address and now - at < MINUTE]
        assert not counter.count_event(address, now) or len(within) > limit


@given(reports, limits)
def test_exactly_the_events_beyond_the_limit_of_a_minute_are_marked(
    reported: list[tuple[bytes, timedelta]], limit: int
) -> None:
    counter = FloodCounter(limit)
    minutes: dict[bytes, list[datetime]] = {}

    for address, now in in_order(reported):
        if address not in minutes or now - minutes[address][0] >= MINUTE:
            minutes[address] = []
        minutes[address].append(now)
        assert counter.count_event(address, now) is (len(minutes[address]) > limit)


@given(limits, st.integers(1, 40))
def test_a_burst_is_marked_from_the_first_event_over_the_limit(limit: int, events: int) -> None:
    counter = FloodCounter(limit)

    marked = [counter.count_event(b"one", NOW) for _ in range(events)]

    assert marked == [number > limit for number in range(1, events + 1)]


@given(st.lists(st.binary(min_size=4, max_size=4), max_size=300), st.integers(1, 20))
def test_the_number_of_remembered_addresses_is_bounded(seen: list[bytes], addresses_max: int) -> None:
    counter = FloodCounter(1, addresses_max=addresses_max)

    for address in seen:
        counter.count_event(address, NOW)
        assert len(counter) <= addresses_max


@given(st.integers(2, 20), st.integers(1, 50))
def test_a_flooding_address_is_not_evicted_by_others(addresses_max: int, rounds: int) -> None:
    counter = FloodCounter(5, addresses_max=addresses_max)
    others = iter(range(10_000))

    marked: list[bool] = []
    for _ in range(rounds):
        marked.append(counter.count_event(b"flood", NOW))
        for _ in range(addresses_max - 1):
            assert not counter.count_event(b"%d" % next(others), NOW)

    assert marked == [number > 5 for number in range(1, rounds + 1)]


def test_a_limit_of_zero_turns_counting_off() -> None:
    counter = FloodCounter(0)

    assert not any(counter.count_event(b"one", NOW) for _ in range(1_000))
    assert len(counter) == 0


def test_a_minute_begins_with_the_first_event_and_ends_by_itself() -> None:
    minute = AddressMinute(NOW)

    assert [minute.count_event(NOW + timedelta(seconds=after)) for after in (0, 59, 60, 119, 120)] == [
        1,
        2,
        1,
        2,
        1,
    ]


def test_a_clock_that_is_set_back_begins_another_minute() -> None:
    minute = AddressMinute(NOW)
    minute.count_event(NOW)

    assert minute.count_event(NOW - timedelta(hours=1)) == 1


def test_a_network_of_ipv6_may_not_send_more_by_taking_many_addresses() -> None:
    counter = FloodCounter(10)
    floods = [
        counter.count_event(bytes((0x20, 1, 0xD, 0xB8, 0, 1, number // 8, number % 8)), NOW)
        for number in range(64)
    ]

    # Of one address each, of eight /56 with eight each: the /48 may send 40.
    assert floods == [False] * 40 + [True] * 24
    in_a_household = [
        counter.count_event(bytes((0x20, 1, 0xD, 0xB8, 0, 2, 7, number)), NOW) for number in range(30)
    ]
    assert in_a_household == [False] * 20 + [True] * 10
    assert not any(counter.count_event(bytes((203, 0, 113, number)), NOW) for number in range(64))
