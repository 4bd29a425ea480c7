"""How many requests an address may make in a minute: alone exactly, together with other processes a little later."""

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
