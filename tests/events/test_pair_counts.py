"""How often an address reports events of a campaign: alone exactly, together with other processes a little later."""

from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from adloom.events.ingest.ivt.pair_counts import HOUR_SECONDS, SHARED_PART, Pair, PairCounts
from adloom.events.ingest.ivt.shared_counts import CountSharer
from adloom.runtime.valkey import Valkey

HERE, THERE = b"\xcb\x00\x71\x07", b"\xcb\x00\x71\x08"
NOON = datetime(2025, 11, 15, 12, tzinfo=UTC).timestamp()
KEYS = "adloom:counted:clicks:*"
CAMPAIGN, OTHER_CAMPAIGN = UUID(int=1).int, UUID(int=2).int
SECRET = "a secret of the tests, long enough"


def count(counts: PairCounts, times: int, address: bytes = HERE, now: float = NOON) -> int:
    """Return how many of so many events are within the bound."""
    return sum(not counts.exceeds(address, CAMPAIGN, now) for _ in range(times))


@given(bound=st.integers(1, 100), times=st.integers(0, 250))
def test_an_address_has_exactly_as_many_events_of_a_campaign_as_its_bound(bound: int, times: int) -> None:
    assert count(PairCounts(bound), times) == min(times, bound)


def test_addresses_and_campaigns_are_counted_apart_and_hours_too() -> None:
    counts = PairCounts(3)

    assert count(counts, 5) == 3
    assert count(counts, 5, THERE) == 3
    assert not counts.exceeds(HERE, OTHER_CAMPAIGN, NOON)
    assert count(counts, 5, now=NOON + HOUR_SECONDS) == 3
    assert count(counts, 5, now=NOON - HOUR_SECONDS) == 3, "the clock was set back"


def test_a_bound_of_zero_is_none() -> None:
    assert count(PairCounts(0), 1_000) == 1_000


def test_a_network_of_ipv6_has_four_times_the_bound() -> None:
    counts = PairCounts(5)

    within = sum(
        count(counts, 5, bytes.fromhex("20010db80001") + network.to_bytes(2, "big")) for network in range(10)
    )

    assert within == 20


def test_beyond_its_memory_a_process_counts_alone() -> None:
    counts = PairCounts(10, shared_max=1)

    assert count(counts, 20, HERE) == 10
    assert count(counts, 20, THERE) == 10
    assert len(counts.shared) == 1


@given(st.data(), st.integers(1, 60), st.integers(1, 5))
def test_processes_exceed_the_bound_only_by_what_they_have_not_shared(
    data: st.DataObject, bound: int, processes: int
) -> None:
    """The law of shared counts: within <= bound + what each took before it shared, or since its last share."""
    told, within = [0] * processes, 0
    every = [PairCounts(bound) for _ in range(processes)]
    burst_max = 0
    for burst in data.draw(st.lists(st.lists(st.integers(0, processes - 1), max_size=30), max_size=10)):
        burst_max = max(burst_max, len(burst))
        within += sum(not every[one].exceeds(HERE, CAMPAIGN, NOON) for one in burst)
        for number, counts in enumerate(every):
            for pair, events in counts.list_pending():
                told[number] = events
                counts.note_shared(counts.begun, pair, events, sum(told))

    unshared = processes * (max(1, bound // SHARED_PART) - 1)
    assert within <= bound + unshared + burst_max


async def test_two_processes_share_a_bound(valkey: Valkey) -> None:
    one, other = PairCounts(80), PairCounts(80)
    sharers = [CountSharer(valkey, {"clicks": counts}, secret=SECRET) for counts in (one, other)]

    within = 0
    for _ in range(40):
        within += count(one, 2) + count(other, 2)
        for sharer in sharers:
            await sharer.share()

    assert 80 <= within <= 84
    [key] = await valkey.keys(KEYS)
    assert 0 < await valkey.ttl(key) <= 2 * HOUR_SECONDS
    assert await valkey.hlen(key) == 2, "of each process"
    assert HERE.hex() not in repr(key), "no address is stored"


async def test_rare_pairs_are_not_shared(valkey: Valkey) -> None:
    counts = PairCounts(80)
    sharer = CountSharer(valkey, {"clicks": counts}, secret=SECRET)

    count(counts, 80 // SHARED_PART - 1)
    await sharer.share()

    assert await valkey.keys(KEYS) == []


async def test_while_valkey_is_away_each_process_counts_alone(valkey: Valkey) -> None:
    counts = PairCounts(16)
    sharer = CountSharer(valkey, {"clicks": counts}, secret=SECRET)
    within = count(counts, 5)
    await sharer.share()
    [key] = await valkey.keys(KEYS)
    await valkey.set(key, "no hash")

    within += count(counts, 5)
    await sharer.share()
    within += count(counts, 10)

    assert within == 16


async def test_what_is_told_again_after_an_answer_that_came_too_late_counts_once(valkey: Valkey) -> None:
    class LateCounts(PairCounts):
        is_late = True

        def note_shared(self, begun: int, pair: Pair, told: int, total: int) -> None:
            if self.is_late:
                raise TimeoutError
            super().note_shared(begun, pair, told, total)

    counts = LateCounts(100)
    sharer = CountSharer(valkey, {"clicks": counts}, secret=SECRET)
    within = count(counts, 60)
    await sharer.share()
    counts.is_late = False
    await sharer.share()

    assert within + count(counts, 100) == 100
