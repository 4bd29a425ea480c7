"""How much an address may send in a minute: alone exactly, together with other processes a little later."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from adloom.events.ingest.ivt.minute_counts import MINUTE_SECONDS, SHARED_PART, MinuteCounts
from adloom.events.ingest.ivt.shared_counts import CountSharer
from adloom.runtime.valkey import Valkey

HERE, THERE = b"\xcb\x00\x71\x07", b"\xcb\x00\x71\x08"
NOW = 1_000.0
SECRET = "a secret of the tests, long enough"


class SharedStore:
    """What Valkey keeps: a count of each address, until its minute ends."""

    def __init__(self) -> None:
        self._counts: dict[bytes, tuple[dict[object, int], float]] = {}

    def share(self, counts: MinuteCounts, second: float, *, is_lost: bool = False) -> None:
        """Tell what was counted; an answer that is lost, or too late, leaves it to be told again."""
        for one in counts.list_pending(second):
            by_process, ends_at = self._counts.get(one.key, ({}, 0.0))
            if second >= ends_at:
                by_process, ends_at = {}, second + one.seconds_left
            by_process[one.address, one.begins_at] = one.requests
            self._counts[one.key] = by_process, ends_at
            if not is_lost:
                one.address.note_shared(one, sum(by_process.values()), ends_at)


bounds = st.integers(1, 60)
bursts = st.lists(
    st.tuples(st.floats(0, 30), st.lists(st.integers(0, 4), max_size=30), st.booleans()),
    min_size=1,
    max_size=10,
)


@given(st.lists(st.lists(st.integers(0, 4), max_size=30), max_size=10), bounds, st.integers(1, 5))
def test_processes_exceed_the_bound_only_by_what_they_have_not_shared(
    came: list[list[int]], bound: int, processes: int
) -> None:
    """The law of shared counts: allowed <= bound + what each took before it shared, or since its last share."""
    store, every = SharedStore(), [MinuteCounts(bound) for _ in range(processes)]
    allowed = 0
    for number, burst in enumerate(came):
        second = NOW + number  # All within a minute.
        allowed += sum(not every[one % processes].exceeds(HERE, second) for one in burst)
        for counts in every:
            store.share(counts, second)

    burst_max = max(map(len, came), default=0)
    assert allowed <= bound + processes * (bound // SHARED_PART + burst_max)


@given(bursts, bounds)
def test_a_process_alone_decides_the_same_whether_it_shares_or_not(
    came: list[tuple[float, list[int], bool]], bound: int
) -> None:
    """Also where answers are lost, so that counts are told twice."""
    store, shared, alone, second = SharedStore(), MinuteCounts(bound), MinuteCounts(bound), NOW
    for later, burst, is_lost in came:
        second += later
        for _ in burst:
            assert shared.exceeds(HERE, second) == alone.exceeds(HERE, second)
        store.share(shared, second, is_lost=is_lost)


def test_a_request_that_comes_while_counts_are_shared_is_not_lost() -> None:
    counts = MinuteCounts(10)
    for _ in range(4):
        counts.exceeds(HERE, NOW)
    [told] = counts.list_pending(NOW)

    counts.exceeds(HERE, NOW)
    told.address.note_shared(told, total=9, ends_at=NOW + 5)

    [left] = counts.list_pending(NOW)
    assert (left.requests, left.seconds_left) == (5, 5)
    assert counts.exceeds(HERE, NOW)
    # An answer that comes after the minute has ended is of no use.
    assert not counts.exceeds(HERE, NOW + 5)
    told.address.note_shared(told, total=100, ends_at=NOW + 60)
    assert not counts.exceeds(HERE, NOW + 5)


def test_only_addresses_that_come_often_are_shared_and_only_so_many() -> None:
    counts = MinuteCounts(16, shared_max=1)
    for address in (HERE, THERE):
        for _ in range(16 // SHARED_PART):
            counts.exceeds(address, NOW)
    rare = counts.list_pending(NOW)
    for address in (HERE, THERE):
        counts.exceeds(address, NOW)

    assert rare == []
    assert [(one.key, one.requests) for one in counts.list_pending(NOW)] == [(HERE, 3)]
    assert counts.list_pending(NOW + MINUTE_SECONDS) == []
    assert not any(MinuteCounts(0).exceeds(HERE, NOW) for _ in range(100))


addresses = st.sampled_from([b"one", b"another", b"third"])
came_later = st.lists(st.tuples(addresses, st.floats(0, 40)), max_size=60)


def in_order(came: Iterable[tuple[bytes, float]]) -> list[tuple[bytes, float]]:
    second, arrived = NOW, list[tuple[bytes, float]]()
    for address, later in came:
        second += later
        arrived.append((address, second))
    return arrived


@given(came_later, st.integers(1, 8))
def test_exactly_what_is_beyond_the_bound_of_a_minute_exceeds_it(
    came: list[tuple[bytes, float]], bound: int
) -> None:
    counts = MinuteCounts(bound)
    minutes: dict[bytes, list[float]] = {}

    for address, second in in_order(came):
        if address not in minutes or second >= minutes[address][0] + MINUTE_SECONDS:
            minutes[address] = []
        minutes[address].append(second)
        assert counts.exceeds(address, second) is (len(minutes[address]) > bound)


@given(st.lists(st.binary(min_size=4, max_size=8), max_size=300), st.integers(1, 20))
def test_the_number_of_remembered_addresses_is_bounded(came: list[bytes], addresses_max: int) -> None:
    counts = MinuteCounts(1, counts_households=True, addresses_max=addresses_max)

    for address in came:
        counts.exceeds(address, NOW)
        assert len(counts) <= addresses_max


@given(st.integers(2, 20), st.integers(1, 50))
def test_an_address_that_comes_often_is_not_forgotten_for_others(addresses_max: int, rounds: int) -> None:
    counts = MinuteCounts(5, addresses_max=addresses_max, shared_max=1)
    others = iter(range(10_000))

    beyond: list[bool] = []
    for _ in range(rounds):
        beyond.append(counts.exceeds(b"often", NOW))
        for _ in range(addresses_max):
            assert not counts.exceeds(b"%d" % next(others), NOW)

    assert beyond == [number > 5 for number in range(1, rounds + 1)]


def test_a_network_of_ipv6_may_not_send_more_by_taking_many_addresses() -> None:
    counts = MinuteCounts(10, counts_households=True)
    beyond = [
        counts.exceeds(bytes((0x20, 1, 0xD, 0xB8, 0, 1, number // 8, number % 8)), NOW)
        for number in range(64)
    ]

    # Of one address each, of eight /56 with eight each: the /48 may send 40.
    assert beyond == [False] * 40 + [True] * 24
    in_a_household = [
        counts.exceeds(bytes((0x20, 1, 0xD, 0xB8, 0, 2, 7, number)), NOW) for number in range(30)
    ]
    assert in_a_household == [False] * 20 + [True] * 10
    assert not any(counts.exceeds(bytes((203, 0, 113, number)), NOW) for number in range(64))


def test_a_clock_that_is_set_back_begins_another_minute() -> None:
    counts = MinuteCounts(1)

    assert [counts.exceeds(HERE, NOW - back) for back in (0, 0, 600, 600)] == [False, True, False, True]


async def test_two_processes_share_the_requests_of_an_address(valkey: Valkey) -> None:
    every = [MinuteCounts(80), MinuteCounts(80)]
    sharers = [CountSharer(valkey, {}, {"requests": (one, lambda: NOW)}, secret=SECRET) for one in every]

    allowed = 0
    for _ in range(60):
        allowed += sum(not one.exceeds(HERE, NOW) for one in every)
        for sharer in sharers:
            await sharer.share()

    assert 80 <= allowed <= 84
    [key] = await valkey.keys("adloom:counted:requests:*")
    assert 0 < await valkey.pttl(key) <= 1_000 * MINUTE_SECONDS
    assert HERE.hex() not in repr(key), "no address is stored"


async def test_what_is_told_again_after_an_answer_that_came_too_late_counts_once(valkey: Valkey) -> None:
    counts, is_late = MinuteCounts(100), iter([False, True, False, False])

    def read_second() -> float:
        if next(is_late):
            raise TimeoutError
        return NOW

    sharer = CountSharer(valkey, {}, {"requests": (counts, read_second)}, secret=SECRET)
    allowed = sum(not counts.exceeds(HERE, NOW) for _ in range(60))
    await sharer.share()
    await sharer.share()

    assert allowed + sum(not counts.exceeds(HERE, NOW) for _ in range(100)) == 100
