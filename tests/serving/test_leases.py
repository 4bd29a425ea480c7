"""The lease book: what a process may give, what it says of it, and when."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.messages import BudgetVerdict, LeaseAnswer, LeaseUsage, Recall
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.core.money import Micros
from adloom.serving.index.rows import LeaseTerms
from adloom.serving.leases.campaign_lease import OFFERS_MIN
from adloom.serving.leases.local_leases import REPORT_SECONDS, UNDER_WAY_MAX, LocalLeases

SESSION = 77
KEY, OTHER = 7, 8
COST = 1_000
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SECOND = int(NOON.timestamp())
MIDNIGHT = datetime(2026, 11, 16, tzinfo=UTC)
ADVERTISER = AdvertiserId(UUID(int=1))
CAMPAIGN = CampaignId(UUID(int=107))


def terms(key: int = KEY, *, cost: int = COST) -> LeaseTerms:
    return LeaseTerms(CampaignId(UUID(int=100 + key)), ADVERTISER, Micros(cost))


class Desk:
    """A book with one placement, and a clock."""

    def __init__(self, *keys: int) -> None:
        self.hurries = 0
        self.leases = LocalLeases(SESSION, on_urgent=self._hurry)
        self.at = 0.0
        self.second = SECOND
        self.is_wanted = True
        self.learn(*(keys or (KEY,)))

    def _hurry(self) -> None:
        self.hurries += 1

    def learn(self, *keys: int, cost: int = COST) -> None:
        self.leases.update({1: {key: terms(key, cost=cost) for key in keys}}, at=self.at)

    def due(self, *, after: float = 0.1, most: int = 500) -> list[LeaseUsage]:
        self.at += after
        said = self.leases.collect_reports(
            second=self.second, at=self.at, most=most, is_wanted=lambda _: self.is_wanted
        )
        return [usage for _, usage in said]

    def answer(self, usage: LeaseUsage, *, key: int = KEY, **fields: object) -> None:
        given = sum(amount for _, amount in usage.given)
        answer = LeaseAnswer(
            campaign_id=terms(key).campaign_id,
            session=SESSION,
            report=usage.report,
            lease=usage.lease or 5,
            granted=Micros(given + usage.want),
            given=Micros(given),
            ends_at=MIDNIGHT,
            verdict=BudgetVerdict.GRANTED,
        )
        self.leases.on_answer(msgspec.structs.replace(answer, **fields), second=self.second, at=self.at)

    def lease(self, offers: int) -> LeaseUsage:
        """Ask, and be granted so many offers."""
        [usage] = self.due()
        self.answer(usage, granted=Micros(offers * COST))
        return usage

    def take(self) -> int | None:
        return self.leases.reserve(KEY, COST, self.second)

    @property
    def reason(self) -> str | None:
        return next((name for name, keys in self.leases.list_excluded().items() if KEY in keys), None)


def test_a_campaign_of_the_index_asks_for_a_lease_ahead_of_need_and_is_not_shown_before() -> None:
    desk = Desk()

    before = desk.take(), desk.reason
    [usage] = desk.due()

    assert before == (None, "budget_pending")
    assert (usage.session, usage.report, usage.lease, usage.given) == (SESSION, 1, 0, ())
    assert usage.want >= 8 * COST


def test_one_that_nobody_asks_for_wants_enough_for_a_burst() -> None:
    [usage] = Desk().due()

    assert usage.want == OFFERS_MIN * COST


def test_offers_are_taken_out_of_the_lease_until_nothing_is_left() -> None:
    desk = Desk()
    desk.lease(2)

    assert [desk.take() for _ in range(3)] == [5, 5, None]
    assert desk.reason == "budget_pending"


def test_who_can_be_shown_and_who_cannot_any_more_is_news() -> None:
    desk = Desk()
    first = desk.leases.take_changes()
    desk.lease(1)
    second = desk.leases.take_changes()
    desk.take()

    assert (first, second, desk.leases.take_changes()) == (
        {KEY: "budget_pending"},
        {KEY: None},
        {KEY: "budget_pending"},
    )
    assert not desk.leases.has_changes


def test_what_was_given_is_reported_by_the_second_and_more_is_asked_for_when_half_is_gone() -> None:
    desk = Desk()
    desk.lease(4)
    desk.take()
    quiet = desk.due()
    desk.second += 1

    desk.take()
    [usage] = desk.due()

    assert (quiet, desk.hurries) == ([], 1)
    assert usage.given == ((SECOND, COST), (SECOND + 1, COST))
    assert usage.lease == 5
    assert not usage.is_needed


def test_what_was_given_is_reported_after_a_while_in_any_case() -> None:
    desk = Desk()
    desk.lease(100)
    desk.take()

    assert desk.due() == []
    assert len(desk.due(after=REPORT_SECONDS)) == 1


def test_a_busy_campaign_wants_two_seconds_of_its_rate() -> None:
    desk = Desk()
    desk.lease(1_000)
    desk.due(after=20)

    for _ in range(100):
        desk.take()
    desk.due(after=0)
    [usage] = desk.due(after=REPORT_SECONDS)

    assert usage.want == 2 * 100 / REPORT_SECONDS * COST


def test_an_answer_that_is_lost_is_asked_for_again_in_the_same_words() -> None:
    desk = Desk()
    [first] = desk.due()

    again = [desk.due(after=seconds) for seconds in (0.4, 0.2, 0.9, 0.2)]

    assert again == [[], [first], [], [first]]


def test_who_is_not_answered_for_hours_goes_on_asking() -> None:
    desk = Desk()
    desk.due()

    assert sum(len(desk.due(after=2)) for _ in range(5_000)) == 5_000


def test_only_the_answer_to_the_last_report_counts() -> None:
    desk = Desk()
    first = desk.lease(1)
    desk.take()
    desk.due()

    desk.answer(first, granted=Micros(9 * COST))

    assert desk.take() is None
    assert desk.leases.late == 1


def test_what_is_given_while_a_report_is_under_way_is_not_forgotten() -> None:
    desk = Desk()
    desk.lease(4)
    desk.take()
    desk.take()
    [usage] = desk.due()
    desk.take()

    desk.answer(usage, granted=Micros(4 * COST))

    assert [desk.take(), desk.take()] == [5, None]


def test_what_is_returned_is_set_aside_before_it_is_said() -> None:
    desk = Desk()
    desk.lease(100)

    desk.leases.on_recall(Recall(campaign_id=CAMPAIGN, session=SESSION), second=desk.second, at=desk.at)
    [usage] = desk.due()

    assert (usage.want, desk.take()) == (0, None)


def test_who_is_being_shown_keeps_what_it_needs_at_once_when_the_rest_is_recalled() -> None:
    desk = Desk()
    desk.lease(100)
    desk.take()
    desk.due()

    desk.leases.on_recall(Recall(campaign_id=CAMPAIGN, session=SESSION), second=desk.second, at=desk.at)
    [usage] = desk.due()

    assert 0 < usage.want < 10 * COST
    assert desk.take() == 5


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (BudgetVerdict.DAILY_BUDGET, "daily_budget"),
        (BudgetVerdict.TOTAL_BUDGET, "total_budget"),
        (BudgetVerdict.ADVERTISER_BUDGET, "advertiser_budget"),
        (BudgetVerdict.PACING, "pacing"),
        (BudgetVerdict.NOT_RUNNING, "budget_pending"),
    ],
)
def test_why_a_campaign_is_not_shown_is_what_it_was_told(verdict: BudgetVerdict, reason: str) -> None:
    desk = Desk()
    [usage] = desk.due()

    desk.answer(usage, granted=Micros(0), verdict=verdict)

    assert desk.reason == reason
    assert desk.leases.refused == {verdict: 1}


def test_a_paced_campaign_asks_again_every_second_while_it_is_asked_for() -> None:
    desk = Desk()
    reports: list[int] = []
    for _ in range(50):
        for usage in desk.due():
            reports.append(usage.report)
            desk.answer(usage, granted=Micros(0), verdict=BudgetVerdict.PACING)

    assert 4 <= len(reports) <= 6


def test_one_that_is_not_asked_for_waits_until_it_is() -> None:
    desk = Desk()
    [usage] = desk.due()
    desk.answer(usage, granted=Micros(0), verdict=BudgetVerdict.PACING)
    desk.is_wanted = False
    quiet = [desk.due() for _ in range(100)]

    desk.is_wanted = True
    still_quiet = desk.due(after=100)
    desk.leases.on_demand(KEY, at=desk.at)
    [again] = desk.due()

    assert not any(quiet)
    assert not still_quiet
    assert again.is_needed


def test_one_whose_budget_is_spent_asks_less_and_less_often() -> None:
    desk = Desk()
    asked: list[float] = []
    for _ in range(600):
        for usage in desk.due(after=0.5):
            asked.append(desk.at)
            desk.answer(usage, granted=Micros(0), verdict=BudgetVerdict.DAILY_BUDGET)

    assert len(asked) < 15
    assert asked[-1] - asked[-2] >= 59


def test_good_news_are_followed_at_once() -> None:
    desk = Desk(KEY, OTHER)
    for usage, key in zip(desk.due(), (KEY, OTHER), strict=True):
        desk.answer(usage, key=key, granted=Micros(0), verdict=BudgetVerdict.DAILY_BUDGET)
    desk.is_wanted = False
    desk.due(after=10)

    desk.leases.on_campaign_restored(CAMPAIGN, at=desk.at)
    one = desk.due()
    desk.leases.on_advertiser_restored(ADVERTISER, at=desk.at)
    both = desk.due()

    assert (len(one), len(both)) == (1, 1)


def test_spend_of_others_is_followed_only_where_the_campaign_is_asked_for() -> None:
    desk = Desk()
    [usage] = desk.due()
    desk.answer(usage, granted=Micros(0), verdict=BudgetVerdict.DAILY_BUDGET)
    desk.leases.on_campaign_exhausted(CAMPAIGN, at=desk.at)
    quiet = desk.due(after=10)

    desk.is_wanted = False
    desk.leases.on_spend_update(CAMPAIGN, at=desk.at)
    unasked = desk.due()
    desk.is_wanted = True
    desk.leases.on_spend_update(CAMPAIGN, at=desk.at)

    assert (quiet, unasked) == ([], [])
    assert len(desk.due()) == 1


def test_nothing_is_given_after_the_day_and_the_rest_is_returned_before_a_new_lease() -> None:
    desk = Desk()
    desk.lease(8)
    desk.take()
    desk.second = int(MIDNIGHT.timestamp())

    is_taken = desk.take()
    [last] = desk.due()
    desk.answer(last, granted=Micros(COST))
    [new] = desk.due()
    desk.answer(new, lease=6, ends_at=MIDNIGHT + timedelta(days=1))

    assert is_taken is None
    assert (last.lease, last.given, last.want) == (5, ((SECOND, COST),), 0)
    assert (new.lease, new.given, new.want > 0) == (0, (), True)
    assert desk.take() == 6


def test_a_lease_that_is_used_up_needs_no_return_at_the_end_of_its_day() -> None:
    desk = Desk()
    desk.lease(1)
    desk.take()
    [usage] = desk.due()
    desk.answer(usage, granted=Micros(COST), verdict=BudgetVerdict.DAILY_BUDGET)
    desk.second = int(MIDNIGHT.timestamp())

    [new] = desk.due()

    assert (new.lease, new.given, new.want > 0) == (0, (), True)


def test_an_idle_campaign_learns_that_its_day_is_over() -> None:
    desk = Desk()
    desk.lease(2)
    before = desk.leases.next_end
    desk.second = int(MIDNIGHT.timestamp())

    [last] = desk.due()

    assert before == desk.second
    assert (last.lease, last.want, desk.reason) == (5, 0, "budget_pending")


def test_a_lease_that_comes_again_after_it_was_returned_is_known_with_what_was_given() -> None:
    """The other's clock is behind: to whoever asks for a new day's lease it gives the old one once more."""
    desk = Desk()
    desk.lease(3)
    desk.take()
    desk.second = int(MIDNIGHT.timestamp())
    [last] = desk.due()
    desk.answer(last, granted=Micros(COST))
    [new] = desk.due()

    desk.answer(
        new, lease=5, granted=Micros(2 * COST), given=Micros(COST), ends_at=MIDNIGHT + timedelta(days=1)
    )

    assert [desk.take(), desk.take()] == [5, None]


def test_a_void_lease_ends_the_session() -> None:
    desk = Desk(KEY, OTHER)
    mine, others = desk.due()
    desk.answer(mine)
    desk.answer(others, key=OTHER)
    for _ in range(OFFERS_MIN):
        desk.take()
    [usage] = desk.due()

    desk.answer(usage, lease=0)
    was_void = desk.leases.is_void, desk.take()
    desk.leases.start_session(78, at=desk.at)
    anew = desk.due()

    assert was_void == (True, None)
    assert not desk.leases.is_void
    assert desk.leases.reserve(OTHER, COST, desk.second) is None
    assert [(usage.session, usage.lease, usage.given) for usage in anew] == [(78, 0, ())] * 2


def test_a_return_that_was_taken_before_is_no_reason_to_end_the_session() -> None:
    desk = Desk()
    desk.lease(2)
    desk.leases.on_recall(Recall(campaign_id=CAMPAIGN, session=SESSION), second=desk.second, at=desk.at)
    [usage] = desk.due()

    desk.answer(usage, lease=0)

    assert not desk.leases.is_void


def test_a_campaign_that_leaves_the_index_returns_what_it_has_and_is_forgotten() -> None:
    desk = Desk()
    desk.lease(2)
    desk.leases.take_changes()

    desk.learn()
    [usage] = desk.due()
    desk.answer(usage, granted=Micros(0))

    assert usage.want == 0
    assert desk.leases.list_excluded() == {}
    assert desk.due(after=100) == []


def test_one_that_comes_back_meanwhile_asks_anew() -> None:
    desk = Desk()
    desk.lease(2)
    desk.learn()
    [usage] = desk.due()
    desk.learn(KEY)

    desk.answer(usage, granted=Micros(0))
    [anew] = desk.due(after=2)
    desk.answer(anew)

    assert desk.take() == 5


def test_a_campaign_on_several_placements_stays_until_the_last() -> None:
    desk = Desk()
    here = {KEY: terms()}
    desk.leases.update({1: here, 2: here}, at=desk.at)
    desk.lease(2)

    desk.leases.update({2: here}, at=desk.at)

    assert desk.take() == 5


def test_a_higher_price_that_the_lease_does_not_pay_is_asked_for() -> None:
    desk = Desk()
    desk.lease(2)

    desk.learn(KEY, cost=5 * COST)
    [usage] = desk.due()

    assert desk.reason == "budget_pending"
    assert (usage.lease, usage.cost) == (5, 5 * COST)


def test_who_closes_gives_nothing_and_returns_everything() -> None:
    desk = Desk(KEY, OTHER)
    mine, others = desk.due()
    desk.answer(mine)
    desk.take()

    desk.leases.close(at=desk.at)
    desk.answer(others, key=OTHER)
    is_settled = desk.leases.is_settled
    for usage, key in zip(desk.due(), (KEY, OTHER), strict=True):
        assert usage.want == 0
        desk.answer(usage, key=key, granted=Micros(0))

    assert not is_settled
    assert desk.leases.is_settled
    assert desk.due(after=100) == []


def test_no_more_ask_at_once_than_may_be_under_way() -> None:
    desk = Desk(*range(UNDER_WAY_MAX + 10))

    asked = desk.due(after=100, most=5_000)
    more = desk.due(most=5_000)
    desk.answer(asked[0], key=0)

    assert (len(asked), more) == (UNDER_WAY_MAX, [])
    assert len(desk.due(after=0, most=5_000)) == 1


def test_asking_for_many_takes_a_while_and_an_urgent_one_does_not_wait_for_it() -> None:
    desk = Desk(*range(1_000))
    desk.due(after=0.1, most=500)
    asked = desk.leases.asked

    desk.due(after=0.2, most=5_000)

    assert 400 <= asked <= 501
    assert desk.leases.asked == 1_000


class Authority:
    """Grants leases as chance has it, and knows what it has committed."""

    def __init__(self) -> None:
        self.granted: dict[int, int] = {}
        self.given: dict[int, int] = {}
        self.reported = 0
        self.lease = 0

    def used(self, usage: LeaseUsage, generosity: int, *, is_new_day: bool) -> LeaseAnswer | None:
        """Take a report as a campaign does."""
        if usage.report < self.reported:
            return None
        if usage.report > self.reported:
            if not usage.lease and (is_new_day or not self.lease):
                self.lease += 1
                self.granted[self.lease] = self.given[self.lease] = 0
            lease = usage.lease or self.lease
            self.reported = usage.report
            self.given[lease] += sum(amount for _, amount in usage.given)
            unassigned = self.granted[lease] - self.given[lease]
            more = min(generosity * COST, max(0, usage.want - unassigned))
            self.granted[lease] = self.given[lease] + min(usage.want, unassigned + more)
        lease = usage.lease or self.lease
        return LeaseAnswer(
            campaign_id=CAMPAIGN,
            session=SESSION,
            report=usage.report,
            lease=lease,
            granted=Micros(self.granted[lease]),
            given=Micros(self.given[lease]),
            ends_at=MIDNIGHT,
            verdict=BudgetVerdict.GRANTED,
        )


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["take", "take", "say", "arrive", "answer", "recall", "day"]),
            st.integers(0, 5),
        ),
        max_size=80,
    )
)
def test_never_more_is_given_than_granted_whatever_becomes_of_messages(steps: list[tuple[str, int]]) -> None:
    """What is said may arrive late, often, or never, and so may what is answered."""
    desk, authority = Desk(), Authority()
    letters: list[LeaseUsage] = []
    answers: list[LeaseAnswer] = []
    taken: dict[int, int] = {}
    is_new_day = False
    for step, number in steps:
        match step:
            case "take":
                lease = desk.take()
                if lease is not None:
                    taken[lease] = taken.get(lease, 0) + COST
            case "say":
                letters += desk.due(after=0.3 * number)
            case "arrive" if letters:
                answer = authority.used(letters[-1 - number % len(letters)], number, is_new_day=is_new_day)
                answers += [] if answer is None else [answer]
            case "answer" if answers:
                desk.leases.on_answer(answers[-1 - number % len(answers)], second=desk.second, at=desk.at)
            case "recall":
                recall = Recall(campaign_id=CAMPAIGN, session=SESSION)
                desk.leases.on_recall(recall, second=desk.second + 2 * number, at=desk.at)
            case "day":
                desk.leases.close(at=desk.at) if number == 0 else None
                is_new_day = number == 1
            case _:
                pass

        assert all(amount <= authority.granted[lease] for lease, amount in taken.items())
