"""Impression caps are exact over all processes: leases of offers, whatever is lost, repeated or killed."""

from collections.abc import Callable
from datetime import timedelta
from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.messages import (
    COUNTED_LEASE,
    BudgetVerdict,
    CampaignCounts,
    ChargeKind,
    CheckClock,
    CountedImpressions,
    CountsRequest,
    LeaseAnswer,
    LeaseUsage,
    MoneyKind,
    Recall,
    SessionOver,
    SpendUpdate,
)
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.serving.index.rows import LeaseTerms
from adloom.serving.leases.local_leases import LocalLeases
from tests.budgets.builders import CAMPAIGN_ID, UNIT, CampaignBench, a_campaign, a_usage
from tests.budgets.test_campaign_clicks import HOLD, by_click

KEY = 7
TERMS = LeaseTerms(CampaignId(CAMPAIGN_ID), None, Micros(1), Micros(0), is_capped=True)
HOLD_SECONDS = 300


class Fleet:
    """Some delivery processes, one campaign, and the event tables."""

    def __init__(self, cap: int, processes: int) -> None:
        self.bench = CampaignBench(
            a_campaign(daily_budget=None, impression_cap=cap, hold_seconds=HOLD_SECONDS)
        )
        self.started_at = self.bench.now
        self.sessions = 0
        self.leases = [self._start() for _ in range(processes)]
        self.answers: list[tuple[LocalLeases, LeaseAnswer | Recall]] = []
        self.unsent: list[LeaseUsage] = []
        self.out: list[tuple[int, int]] = []  # Lease and second of offers.
        self.seen: list[tuple[int, int, str]] = []  # Counted by the tables, and not told yet.
        self.counted = 0
        self.entries = 0
        self.count()

    @property
    def second(self) -> int:
        return self.bench.second

    @property
    def at(self) -> float:
        return (self.bench.now - self.started_at).total_seconds()

    def _start(self) -> LocalLeases:
        self.sessions += 1
        leases = LocalLeases(self.sessions)
        leases.update({1: {KEY: TERMS}}, at=self.at)
        return leases

    def report(self, number: int) -> None:
        """Send what a process has to say; it may be lost on the way to the campaign."""
        leases = self.leases[number % len(self.leases)]
        if leases.is_void:
            self.sessions += 1
            leases.start_session(self.sessions, at=self.at)
        self.unsent += [
            usage
            for _, usage in leases.collect_reports(
                second=self.second, at=self.at, most=9, is_wanted=lambda _: True
            )
        ]

    def deliver(self) -> None:
        for usage in self.unsent:
            self.bench.take(usage)
            self._note()
        self.unsent.clear()

    def _note(self) -> None:
        by_session = {leases.session: leases for leases in self.leases}
        for kind in (LeaseAnswer, Recall):
            for message in self.bench.published(kind):
                if message.session in by_session:
                    self.answers.append((by_session[message.session], message))

    def answer(self) -> None:
        for leases, message in self.answers:
            if isinstance(message, LeaseAnswer):
                leases.on_answer(message, second=self.second, at=self.at)
            else:
                leases.on_recall(message, second=self.second, at=self.at)
        self.answers.clear()

    def offer(self, number: int) -> bool:
        lease = self.leases[number % len(self.leases)].reserve(KEY, 1, self.second)
        if lease is None:
            return False
        assert lease & COUNTED_LEASE
        self.out.append((lease & ~COUNTED_LEASE, self.second))
        return True

    def look(self, number: int) -> None:
        """A visitor sees an offer that is held: the tables count it."""
        held = [one for one in self.out if one[1] > self.second - HOLD_SECONDS]
        if held:
            one = held[number % len(held)]
            self.out.remove(one)
            self.entries += 1
            self.counted += 1
            self.seen.append((*one, f"{self.entries}-0"))

    def tell_seen(self, *, is_repeated: bool) -> None:
        """Charges follow the tables, and may be repeated."""
        if self.seen:
            self.bench.take(CountedImpressions(tuple(self.seen)))
            if is_repeated:
                self.bench.take(CountedImpressions(tuple(self.seen)))
            self.seen.clear()

    def count(self) -> None:
        """Tell what the tables have counted by now."""
        until = f"{self.entries}-0"
        self.bench.take(
            CampaignCounts(impressions=self.counted, clicks=0, until=until, complete_until=self.second)
        )

    def kill(self, number: int) -> None:
        number %= len(self.leases)
        over = self.leases[number].session
        self.leases[number] = self._start()
        self.bench.take(SessionOver(session=over, second=self.second))

    def wait(self, seconds: int) -> None:
        """Let time pass; what was seen may be told and counted after the holds of its offers were over."""
        self.bench.now += timedelta(seconds=seconds)
        self.bench.take(CheckClock())

    @property
    def held(self) -> int:
        return sum(at > self.second - HOLD_SECONDS for _, at in self.out)


ACTIONS: dict[str, Callable[[Fleet, int], object]] = {
    "offer": lambda fleet, number: fleet.offer(number),
    "report": lambda fleet, number: fleet.report(number),
    "deliver": lambda fleet, _: fleet.deliver(),
    "lose reports": lambda fleet, _: fleet.unsent.clear(),
    "answer": lambda fleet, _: fleet.answer(),
    "lose answers": lambda fleet, _: fleet.answers.clear(),
    "look": lambda fleet, number: fleet.look(number),
    "tell": lambda fleet, number: fleet.tell_seen(is_repeated=number % 2 == 0),
    "count": lambda fleet, _: fleet.count(),
    "kill": lambda fleet, number: fleet.kill(number),
    "wait": lambda fleet, number: fleet.wait(60 * (number + 1)),
}
# Most often what normally happens.
OFTEN = ["offer"] * 6 + ["report", "deliver", "answer"] * 6 + ["look"] * 3
STEPS = 250


@given(
    cap=st.integers(0, 12),
    processes=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_counted_and_held_offers_of_all_processes_never_exceed_the_cap(
    cap: int, processes: int, seed: int
) -> None:
    """A long run of a seed: short ones seldom come to the end of a cap."""
    fleet, chance = Fleet(cap, processes), Random(seed)  # noqa: S311 - not a secret

    for _ in range(STEPS):
        ACTIONS[chance.choice([*ACTIONS, *OFTEN])](fleet, chance.randrange(10))

        assert fleet.counted + fleet.held <= cap


def test_all_of_a_cap_is_offered_by_several_processes_and_holds_come_back() -> None:
    fleet = Fleet(20, 3)

    def run(rounds: int, *, is_seen: bool) -> int:
        made = 0
        for number in range(rounds):
            for process in range(3):
                made += fleet.offer(process)
                fleet.report(process)
            fleet.deliver()
            fleet.answer()
            if is_seen:
                fleet.look(number)
                fleet.tell_seen(is_repeated=False)
                fleet.count()
            fleet.wait(1)
        return made

    assert run(120, is_seen=False) == 20  # Nobody sees them.
    fleet.wait(HOLD_SECONDS)
    again = run(400, is_seen=True)

    assert fleet.counted == 20
    assert again == 20


def test_a_hold_ends_with_the_hold_time_that_is_set() -> None:
    bench = CampaignBench(a_campaign(daily_budget=None, impression_cap=1, hold_seconds=60))
    bench.take(CampaignCounts(impressions=0, clicks=0, until="0-0"))
    lease = bench.answered(want=Micros(1), cost=Micros(1), want_impressions=1).lease
    bench.answered(
        report=2,
        lease=lease,
        given=((bench.second, 1),),
        impressions=((bench.second, 1),),
        want=Micros(0),
        cost=Micros(1),
    )

    refused = bench.answered(session=2, want=Micros(1), cost=Micros(1), want_impressions=1)
    bench.wait(61)
    assert bench.published(CountsRequest), "it may have been seen in time"
    bench.take(CampaignCounts(impressions=0, clicks=0, until="0-0", complete_until=bench.second))
    granted = bench.answered(
        session=2, report=2, lease=refused.lease, want=Micros(1), cost=Micros(1), want_impressions=1
    )

    assert (refused.impressions_granted, refused.verdict) == (0, BudgetVerdict.IMPRESSION_CAP)
    assert granted.impressions_granted == 1


def test_nothing_is_offered_before_it_is_known_how_much_was_counted() -> None:
    bench = CampaignBench(a_campaign(daily_budget=None, impression_cap=5))

    first = bench.answered(want=Micros(9), cost=Micros(1), want_impressions=9)
    bench.take(CampaignCounts(impressions=4, clicks=0, until="7-0"))
    second = bench.answered(report=2, lease=first.lease, want=Micros(9), cost=Micros(1), want_impressions=9)

    assert (first.impressions_granted, second.impressions_granted) == (0, 1)


def test_holds_that_come_back_are_announced() -> None:
    bench = CampaignBench(a_campaign(daily_budget=None, impression_cap=1, hold_seconds=60))
    bench.take(CampaignCounts(impressions=0, clicks=0, until="0-0"))
    lease = bench.answered(want=Micros(1), cost=Micros(1), want_impressions=1).lease
    bench.take(
        a_usage(report=2, lease=lease, impressions=((bench.second, 1),), want=Micros(0), cost=Micros(1))
    )

    bench.take(CheckClock(), after=timedelta(seconds=61))
    assert (bench.published(SpendUpdate), bench.woken_at) == ([], bench.now + timedelta(seconds=1))
    bench.take(CheckClock())
    assert not bench.published(CountsRequest), "one a second is enough"
    bench.take(CampaignCounts(impressions=0, clicks=0, until="0-0", complete_until=bench.second))

    assert bench.published(SpendUpdate)
    assert bench.woken_at is None


def test_a_campaign_that_is_paused_asks_for_no_counts_until_it_runs_again() -> None:
    config = a_campaign(daily_budget=None, impression_cap=1, hold_seconds=60)
    bench = CampaignBench(config)
    bench.take(CampaignCounts(impressions=0, clicks=0, until="0-0"))
    lease = bench.answered(want=Micros(1), cost=Micros(1), want_impressions=1).lease
    bench.take(
        a_usage(report=2, lease=lease, impressions=((bench.second, 1),), want=Micros(0), cost=Micros(1))
    )

    bench.take(msgspec.structs.replace(config, version=2, is_running=False))
    bench.take(CheckClock(), after=timedelta(seconds=61))
    assert (bench.published(CountsRequest), bench.woken_at) == ([], None)
    bench.take(msgspec.structs.replace(config, version=3))

    assert bench.published(CountsRequest)


def test_a_campaign_that_has_heard_of_no_counts_asks_for_them() -> None:
    bench = CampaignBench(a_campaign(daily_budget=None, impression_cap=1))

    bench.answered(want=Micros(1), cost=Micros(1), want_impressions=1)

    assert bench.published(CountsRequest)


def test_clicks_beyond_the_click_cap_are_not_billed() -> None:
    bench = CampaignBench(a_campaign(click_cap=5))
    bench.take(CampaignCounts(impressions=9, clicks=3, until="9-0"))
    lease = bench.answered(want=Micros(9 * HOLD), cost=HOLD, price=UNIT).lease

    for _ in range(4):
        bench.take(by_click(bench, lease))
    bench.take(CampaignCounts(impressions=9, clicks=7, until="13-0"))
    bench.wait(1)

    kinds = [row.kind for row in bench.rows if row.confirmed_by is ChargeKind.CLICK]
    assert kinds == [MoneyKind.CHARGE, MoneyKind.CHARGE, MoneyKind.OVER_CAP, MoneyKind.OVER_CAP]
