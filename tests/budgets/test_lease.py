"""A lease: in whatever order its events come, nothing is spent that was not granted."""

from datetime import date
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from adloom.budgets.campaign.lease import Lease
from adloom.core.money import Micros

TEN = Micros(10)
FIVE = Micros(5)


def a_lease(granted: int = 0) -> Lease:
    return Lease(number=1, session=7, window=1, day=date(2026, 11, 15), granted=Micros(granted))


def check_lease(lease: Lease) -> None:
    """Check that a grant is the sum of its parts."""
    held = sum(lease.held.values())
    assert lease.granted == lease.unassigned + held + lease.charged + lease.expired
    assert lease.holding == held
    assert lease.ahead == -sum(amount for amount in lease.held.values() if amount < 0)
    assert 0 <= lease.ahead <= lease.unassigned
    assert lease.outstanding >= 0
    assert 0 not in lease.held.values()


class LeaseMachine(RuleBasedStateMachine):
    """A campaign's side of a lease, under any sequence of events."""

    def __init__(self) -> None:
        super().__init__()
        self.lease = a_lease()
        self.report = 0
        self.granted_most = 0
        self.released_until = 0
        self.now = 100

    @rule(seconds=st.integers(0, 20))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @precondition(lambda self: self.lease.closed_second is None)
    @rule(amount=st.integers(0, 50))
    def is_granted_or_returned(self, amount: int) -> None:
        self.lease = self.lease.granted_up_to(Micros(amount), second=self.now)

    @precondition(lambda self: self.lease.closed_second is None)
    @rule(data=st.data())
    def reports(self, data: st.DataObject) -> None:
        seconds = st.integers(self.now - 30, self.now + 30)
        given_ = data.draw(st.lists(st.tuples(seconds, st.integers(1, 20)), max_size=4))
        self.report += 1
        after = self.lease.reported_given(tuple(given_), report=self.report, second=self.now)
        if after.is_sound:
            self.lease = after

    @rule(data=st.data(), amount=st.integers(1, 20))
    def is_confirmed(self, data: st.DataObject, amount: int) -> None:
        second = data.draw(
            st.sampled_from(sorted(self.lease.held) or [self.now]) | st.integers(self.now - 30, self.now + 30)
        )
        if not self.lease.has_expired(second, released_until=self.released_until) and self.lease.covers(
            second, Micros(amount)
        ):
            self.lease = self.lease.charged_at(second, Micros(amount))

    @rule(data=st.data())
    def several_are_confirmed_at_once(self, data: st.DataObject) -> None:
        seconds = st.sampled_from(sorted(self.lease.held) or [self.now]) | st.integers(
            self.now - 30, self.now + 30
        )
        sums = data.draw(st.dictionaries(seconds, st.integers(1, 20), max_size=4))
        if any(self.lease.has_expired(one, released_until=self.released_until) for one in sums):
            return
        expected: Lease | None = self.lease
        for second, amount in sums.items():
            is_covered = expected is not None and expected.covers(second, Micros(amount))
            expected = expected.charged_at(second, Micros(amount)) if expected and is_covered else None

        charged = self.lease.charged_in(sums)

        assert charged == expected
        self.lease = charged or self.lease

    @rule()
    def holds_expire(self) -> None:
        self.released_until = max(self.released_until, self.now - 10)
        self.lease = self.lease.expired_until(self.released_until)

        since = self.lease.find_oldest_hold()
        assert since is None or since > self.released_until

    @precondition(lambda self: self.lease.closed_second is None)
    @rule()
    def its_session_ends(self) -> None:
        before = self.lease
        self.lease = self.lease.closed_at(self.now)

        assert self.lease.outstanding == before.outstanding
        assert self.lease.unassigned == 0

    @invariant()
    def the_grant_is_the_sum_of_its_parts(self) -> None:
        check_lease(self.lease)

    @invariant()
    def nothing_is_spent_that_was_not_granted(self) -> None:
        self.granted_most = max(self.granted_most, self.lease.granted)
        assert self.lease.charged + self.lease.expired <= self.granted_most

    def teardown(self) -> None:
        gone = self.lease if self.lease.closed_second is not None else self.lease.closed_at(self.now)
        assert gone.expired_until(self.now + 100).is_settled, "nothing leaks"


TestLease = LeaseMachine.TestCase


@given(st.lists(st.integers(1, 9), min_size=1), st.randoms(use_true_random=False))
def test_the_order_of_reports_and_confirms_does_not_matter(amounts: list[int], order: Random) -> None:
    lease = a_lease(sum(amounts))
    events = [("report", second, amount) for second, amount in enumerate(amounts)]
    events += [("confirm", second, amount) for second, amount in enumerate(amounts)]
    order.shuffle(events)

    for number, (kind, second, amount) in enumerate(events, 1):
        if kind == "report":
            lease = lease.reported_given(((second, amount),), report=number, second=100)
        else:
            assert lease.covers(second, Micros(amount))
            lease = lease.charged_at(second, Micros(amount))

    assert lease.is_settled
    assert lease.charged == sum(amounts)


def test_a_hold_expires_at_its_second() -> None:
    lease = a_lease(20).reported_given(((100, 10), (101, 5)), report=1, second=101)

    assert lease.expired_until(99).expired == 0
    assert lease.expired_until(100).expired == 10
    assert lease.expired_until(101).expired == 15


def test_an_offer_of_a_process_whose_clock_is_ahead_is_held_no_longer_than_others() -> None:
    lease = a_lease(10).reported_given(((3_700, 10),), report=1, second=100)

    back = lease.expired_until(100)

    assert back.expired == 10
    assert back.has_expired(3_700, released_until=100), (
        "its confirm is too late, although its second is in the future"
    )
    assert not lease.has_expired(3_700, released_until=99)


def test_an_offer_may_be_confirmed_before_it_is_reported() -> None:
    lease = a_lease(20).charged_at(100, TEN)

    assert (lease.unassigned, lease.ahead, lease.outstanding) == (20, 10, 10)

    lease = lease.reported_given(((100, 10),), report=1, second=100)

    assert (lease.unassigned, lease.ahead, lease.outstanding, lease.held) == (10, 0, 10, {})


def test_a_confirmed_amount_that_is_not_reported_yet_cannot_be_returned() -> None:
    lease = a_lease(20).charged_at(100, TEN).granted_up_to(Micros(0), second=100)

    assert lease.granted == 10


def test_a_report_of_more_than_was_granted_is_not_sound() -> None:
    assert not a_lease(10).reported_given(((100, 11),), report=1, second=100).is_sound
    assert a_lease(10).reported_given(((100, 10),), report=1, second=100).is_sound


def test_the_unreported_rest_of_an_ended_session_is_held_from_its_end() -> None:
    lease = a_lease(20).reported_given(((100, 10),), report=1, second=100).closed_at(200)

    assert lease.held == {100: 10, 200: 10}
    assert lease.covers(150, TEN), "offered and not reported"
    assert not lease.covers(150, Micros(11))
    assert lease.charged_at(150, TEN).held == {100: 10}


def test_offers_of_an_ended_session_are_charged_to_their_own_second_first() -> None:
    lease = a_lease(14).reported_given(((100, 10),), report=1, second=100).closed_at(200)

    lease = lease.charged_at(100, Micros(4)).charged_at(100, TEN)

    assert lease.is_settled
