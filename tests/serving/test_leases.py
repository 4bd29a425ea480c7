"""Local leases: what a process may offer, what it reports, and when."""

import random
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
from adloom.serving.leases.local_leases import LOWERED_SECONDS, REPORT_SECONDS, UNDER_WAY_MAX, LocalLeases

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


class LeaseHolder:
    """The local leases of one placement, with a clock."""

    def __init__(self, *keys: int) -> None:
        self.urgent_calls = 0
        self.leases = LocalLeases(SESSION, on_urgent=self._on_urgent)
        self.at = 0.0
        self.second = SECOND
        self.is_wanted = True
        self.load(*(keys or (KEY,)))

    def _on_urgent(self) -> None:
        self.urgent_calls += 1

    def load(self, *keys: int, cost: int = COST) -> None:
        self.leases.update({1: {key: terms(key, cost=cost) for key in keys}}, at=self.at)

    def due(self, *, after: float = 0.1, most: int = 500) -> list[LeaseUsage]:
        self.at += after
        reports = self.leases.collect_reports(
            second=self.second, at=self.at, most=most, is_wanted=lambda _: self.is_wanted
        )
        return [usage for _, usage in reports]

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
        """Ask for a lease, and be granted one for `offers` offers."""
        [usage] = self.due()
        self.answer(usage, granted=Micros(offers * COST))
        return usage

    def take(self) -> int | None:
        return self.leases.reserve(KEY, COST, self.second)

    @property
    def reason(self) -> str | None:
        return next(
            (name for name, keys in self.leases.registry.list_excluded().items() if KEY in keys), None
        )


def test_a_new_campaign_asks_for_a_lease_and_is_excluded_until_it_has_one() -> None:
    holder = LeaseHolder()

    before = holder.take(), holder.reason
    [usage] = holder.due()

    assert before == (None, "budget_pending")
    assert (usage.session, usage.report, usage.lease, usage.given) == (SESSION, 1, 0, ())
    assert usage.want >= 8 * COST


def test_the_pace_leaves_out_a_share_of_offers_and_reports_how_many_there_would_be_without_it() -> None:
    holder = LeaseHolder()
    draws = iter([0.1, 0.9, 0.3, 0.7, 0.2])
    holder.leases = LocalLeases(SESSION, draw=lambda: next(draws))
    holder.load(KEY)
    [usage] = holder.due()
    holder.answer(usage, throttle=0.5)

    assert [holder.take() for _ in range(5)] == [None, 5, None, 5, None]
    assert holder.reason is None, "it may win the next draw"
    assert holder.leases.left_out == 3
    holder.due()
    [usage] = holder.due(after=REPORT_SECONDS)
    assert (usage.requests, usage.offers, sum(amount for _, amount in usage.given)) == (4, 2, 2 * COST)


@given(st.floats(0, 0.99), st.floats(0.01, 1), st.integers(0, 1_000))
def test_what_passes_the_pace_and_is_not_won_is_no_offer(throttle: float, won: float, seed: int) -> None:
    """As many offers are reported as there would be without a pace: those that would be won."""
    holder, chance = LeaseHolder(), random.Random(seed)  # noqa: S311 - a simulation
    holder.leases = LocalLeases(SESSION, draw=chance.random)
    holder.load(KEY)
    [usage] = holder.due()
    holder.answer(usage, throttle=throttle, granted=Micros(10**9))
    made = requests = offers = 0
    for number in range(1, 4_001):
        if not holder.leases.is_left_out(KEY) and chance.random() < won:
            made += holder.leases.reserve(KEY, COST, holder.second, is_drawn=True) is not None
        if not number % 1_000:
            holder.due()
            for usage in holder.due(after=REPORT_SECONDS):
                requests, offers = requests + usage.requests, offers + usage.offers
                holder.answer(usage, throttle=throttle, granted=Micros(10**9))

    assert offers == made
    deviation = (4_000 * won / (1 - throttle)) ** 0.5
    assert abs(requests - 4_000 * won) <= 6 * deviation + 1 / (1 - throttle)


def test_an_offer_that_could_not_be_made_is_no_offer() -> None:
    holder = LeaseHolder()
    holder.lease(2)
    assert [holder.take() for _ in range(3)] == [5, 5, None]
    [usage] = holder.due()
    assert (usage.requests, usage.offers) == (3, 2)


def test_a_campaign_that_is_stopped_says_nothing_of_what_would_come() -> None:
    holder = LeaseHolder()
    [usage] = holder.due()
    holder.answer(usage, throttle=1.0)
    assert holder.leases.reserve(KEY, COST, holder.second, is_drawn=True) == 5
    holder.due()
    [usage] = holder.due(after=REPORT_SECONDS)
    assert (usage.requests, usage.offers) == (0, 1)


def test_a_campaign_that_is_left_out_all_the_time_still_reports() -> None:
    holder = LeaseHolder()
    holder.leases = LocalLeases(SESSION, draw=lambda: 0.0)
    holder.load(KEY)
    [usage] = holder.due()
    holder.answer(usage, throttle=0.99)
    assert holder.take() is None
    holder.due()
    [usage] = holder.due(after=REPORT_SECONDS)
    assert (usage.requests, usage.given) == (0, ())


def test_multipliers_of_bids_come_with_answers_and_end_with_the_lease() -> None:
    holder = LeaseHolder()
    [usage] = holder.due()
    holder.answer(usage, multiplier=0.4)
    registry = holder.leases.registry

    assert registry.take_multipliers() == {KEY: 0.4}
    assert registry.take_multipliers() == {}
    holder.load(OTHER)
    assert registry.take_multipliers() == {KEY: 1.0}


def test_a_campaign_whose_bid_was_lowered_reports_while_it_wins_nothing() -> None:
    """Its bid may be too low for any offer; another is decided only at a report. While nobody asks, that can wait."""
    holder = LeaseHolder()
    [usage] = holder.due()
    holder.answer(usage, multiplier=0.4)

    for _ in range(3):
        assert holder.due(after=LOWERED_SECONDS - 1) == []
        [usage] = holder.due(after=1)
        assert (usage.given, usage.offers) == ((), 0)
        holder.answer(usage, multiplier=0.4)
    holder.is_wanted = False
    assert [usage for _ in range(3) for usage in holder.due(after=LOWERED_SECONDS)] == []
    holder.is_wanted = True
    [usage] = holder.due(after=LOWERED_SECONDS)
    holder.answer(usage, multiplier=1.0)
    assert [usage for _ in range(3) for usage in holder.due(after=LOWERED_SECONDS)] == []


def test_an_idle_campaign_asks_for_enough_for_a_burst() -> None:
    [usage] = LeaseHolder().due()

    assert usage.want == OFFERS_MIN * COST


def test_offers_are_taken_out_of_the_lease_until_it_is_used_up() -> None:
    holder = LeaseHolder()
    holder.lease(2)

    assert [holder.take() for _ in range(3)] == [5, 5, None]
    assert holder.reason == "budget_pending"


def test_a_granted_lease_and_a_used_up_lease_are_changes() -> None:
    holder = LeaseHolder()
    first = holder.leases.take_changes()
    holder.lease(1)
    second = holder.leases.take_changes()
    holder.take()

    assert (first, second, holder.leases.take_changes()) == (
        {KEY: "budget_pending"},
        {KEY: None},
        {KEY: "budget_pending"},
    )
    assert not holder.leases.changes


def test_usage_is_reported_by_second_when_half_of_the_lease_is_used() -> None:
    holder = LeaseHolder()
    holder.lease(4)
    holder.take()
    quiet = holder.due()
    holder.second += 1

    holder.take()
    [usage] = holder.due()

    assert (quiet, holder.urgent_calls) == ([], 1)
    assert usage.given == ((SECOND, COST), (SECOND + 1, COST))
    assert usage.lease == 5
    assert not usage.is_needed


def test_usage_is_reported_after_report_seconds_at_the_latest() -> None:
    holder = LeaseHolder()
    holder.lease(100)
    holder.take()

    assert holder.due() == []
    assert len(holder.due(after=REPORT_SECONDS)) == 1


def test_a_busy_campaign_asks_for_two_seconds_of_its_rate() -> None:
    holder = LeaseHolder()
    holder.lease(1_000)
    holder.due(after=20)

    for _ in range(100):
        holder.take()
    holder.due(after=0)
    [usage] = holder.due(after=REPORT_SECONDS)

    assert usage.want == 2 * 100 / REPORT_SECONDS * COST


def test_an_unanswered_report_is_repeated_unchanged() -> None:
    holder = LeaseHolder()
    [first] = holder.due()

    again = [holder.due(after=seconds) for seconds in (0.4, 0.2, 0.9, 0.2)]

    assert again == [[], [first], [], [first]]


def test_an_unanswered_report_is_repeated_for_hours() -> None:
    holder = LeaseHolder()
    holder.due()

    assert sum(len(holder.due(after=2)) for _ in range(5_000)) == 5_000


def test_only_the_answer_to_the_last_report_counts() -> None:
    holder = LeaseHolder()
    first = holder.lease(1)
    holder.take()
    holder.due()

    holder.answer(first, granted=Micros(9 * COST))

    assert holder.take() is None
    assert holder.leases.late == 1


def test_offers_made_while_a_report_is_under_way_are_counted() -> None:
    holder = LeaseHolder()
    holder.lease(4)
    holder.take()
    holder.take()
    [usage] = holder.due()
    holder.take()

    holder.answer(usage, granted=Micros(4 * COST))

    assert [holder.take(), holder.take()] == [5, None]


def test_a_recalled_lease_is_not_spent_any_more() -> None:
    holder = LeaseHolder()
    holder.lease(100)

    holder.leases.on_recall(Recall(campaign_id=CAMPAIGN, session=SESSION), second=holder.second, at=holder.at)
    [usage] = holder.due()

    assert (usage.want, holder.take()) == (0, None)


def test_a_busy_campaign_keeps_a_part_of_a_recalled_lease() -> None:
    holder = LeaseHolder()
    holder.lease(100)
    holder.take()
    holder.due()

    holder.leases.on_recall(Recall(campaign_id=CAMPAIGN, session=SESSION), second=holder.second, at=holder.at)
    [usage] = holder.due()

    assert 0 < usage.want < 10 * COST
    assert holder.take() == 5


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
def test_the_reason_of_an_exclusion_follows_from_the_verdict(verdict: BudgetVerdict, reason: str) -> None:
    holder = LeaseHolder()
    [usage] = holder.due()

    holder.answer(usage, granted=Micros(0), verdict=verdict)

    assert holder.reason == reason
    assert holder.leases.refused == {verdict: 1}


def test_a_paced_campaign_asks_again_every_second_while_it_is_requested() -> None:
    holder = LeaseHolder()
    reports: list[int] = []
    for _ in range(50):
        for usage in holder.due():
            reports.append(usage.report)
            holder.answer(usage, granted=Micros(0), verdict=BudgetVerdict.PACING)

    assert 4 <= len(reports) <= 6


def test_a_refused_campaign_asks_again_only_when_it_is_requested() -> None:
    holder = LeaseHolder()
    [usage] = holder.due()
    holder.answer(usage, granted=Micros(0), verdict=BudgetVerdict.PACING)
    holder.is_wanted = False
    quiet = [holder.due() for _ in range(100)]

    holder.is_wanted = True
    still_quiet = holder.due(after=100)
    holder.leases.on_demand(KEY, at=holder.at)
    [again] = holder.due()

    assert not any(quiet)
    assert not still_quiet
    assert again.is_needed


def test_a_campaign_whose_budget_is_spent_asks_less_and_less_often() -> None:
    holder = LeaseHolder()
    asked: list[float] = []
    for _ in range(600):
        for usage in holder.due(after=0.5):
            asked.append(holder.at)
            holder.answer(usage, granted=Micros(0), verdict=BudgetVerdict.DAILY_BUDGET)

    assert len(asked) < 15
    assert asked[-1] - asked[-2] >= 59


def test_a_restored_budget_makes_its_campaigns_ask_again() -> None:
    holder = LeaseHolder(KEY, OTHER)
    for usage, key in zip(holder.due(), (KEY, OTHER), strict=True):
        holder.answer(usage, key=key, granted=Micros(0), verdict=BudgetVerdict.DAILY_BUDGET)
    holder.is_wanted = False
    holder.due(after=10)

    holder.leases.on_campaign_restored(CAMPAIGN, at=holder.at)
    one = holder.due()
    holder.leases.on_advertiser_restored(ADVERTISER, at=holder.at)
    both = holder.due()

    assert (len(one), len(both)) == (1, 1)


def test_a_spend_update_makes_a_campaign_ask_again_only_if_it_is_requested() -> None:
    holder = LeaseHolder()
    [usage] = holder.due()
    holder.answer(usage, granted=Micros(0), verdict=BudgetVerdict.DAILY_BUDGET)
    holder.leases.on_campaign_exhausted(CAMPAIGN, at=holder.at)
    quiet = holder.due(after=10)

    holder.is_wanted = False
    holder.leases.on_spend_update(CAMPAIGN, at=holder.at)
    not_requested = holder.due()
    holder.is_wanted = True
    holder.leases.on_spend_update(CAMPAIGN, at=holder.at)

    assert (quiet, not_requested) == ([], [])
    assert len(holder.due()) == 1


def test_a_lease_is_not_spent_after_its_day_and_is_returned_before_a_new_one() -> None:
    holder = LeaseHolder()
    holder.lease(8)
    holder.take()
    holder.second = int(MIDNIGHT.timestamp())

    is_taken = holder.take()
    [last] = holder.due()
    holder.answer(last, granted=Micros(COST))
    [new] = holder.due()
    holder.answer(new, lease=6, ends_at=MIDNIGHT + timedelta(days=1))

    assert is_taken is None
    assert (last.lease, last.given, last.want) == (5, ((SECOND, COST),), 0)
    assert (new.lease, new.given, new.want > 0) == (0, (), True)
    assert holder.take() == 6


def test_a_used_up_lease_is_not_returned_at_the_end_of_its_day() -> None:
    holder = LeaseHolder()
    holder.lease(1)
    holder.take()
    [usage] = holder.due()
    holder.answer(usage, granted=Micros(COST), verdict=BudgetVerdict.DAILY_BUDGET)
    holder.second = int(MIDNIGHT.timestamp())

    [new] = holder.due()

    assert (new.lease, new.given, new.want > 0) == (0, (), True)


def test_an_idle_campaign_returns_its_lease_at_the_end_of_its_day() -> None:
    holder = LeaseHolder()
    holder.lease(2)
    before = holder.leases.next_end
    holder.second = int(MIDNIGHT.timestamp())

    [last] = holder.due()

    assert before == holder.second
    assert (last.lease, last.want, holder.reason) == (5, 0, "budget_pending")


def test_a_returned_lease_that_is_granted_again_keeps_its_usage() -> None:
    """If the clock of the budget actor is behind, it grants yesterday's lease again."""
    holder = LeaseHolder()
    holder.lease(3)
    holder.take()
    holder.second = int(MIDNIGHT.timestamp())
    [last] = holder.due()
    holder.answer(last, granted=Micros(COST))
    [new] = holder.due()

    holder.answer(
        new, lease=5, granted=Micros(2 * COST), given=Micros(COST), ends_at=MIDNIGHT + timedelta(days=1)
    )

    assert [holder.take(), holder.take()] == [5, None]


def test_a_void_lease_ends_the_session() -> None:
    holder = LeaseHolder(KEY, OTHER)
    mine, others = holder.due()
    holder.answer(mine)
    holder.answer(others, key=OTHER)
    for _ in range(OFFERS_MIN):
        holder.take()
    [usage] = holder.due()

    holder.answer(usage, lease=0)
    was_void = holder.leases.is_void, holder.take()
    holder.leases.start_session(78, at=holder.at)
    after = holder.due()

    assert was_void == (True, None)
    assert not holder.leases.is_void
    assert holder.leases.reserve(OTHER, COST, holder.second) is None
    assert [(usage.session, usage.lease, usage.given) for usage in after] == [(78, 0, ())] * 2


def test_a_void_answer_to_a_return_does_not_end_the_session() -> None:
    holder = LeaseHolder()
    holder.lease(2)
    holder.leases.on_recall(Recall(campaign_id=CAMPAIGN, session=SESSION), second=holder.second, at=holder.at)
    [usage] = holder.due()

    holder.answer(usage, lease=0)

    assert not holder.leases.is_void


def test_a_campaign_that_leaves_the_index_returns_its_lease_and_is_removed() -> None:
    holder = LeaseHolder()
    holder.lease(2)
    holder.leases.take_changes()

    holder.load()
    [usage] = holder.due()
    holder.answer(usage, granted=Micros(0))

    assert usage.want == 0
    assert holder.leases.registry.list_excluded() == {}
    assert holder.due(after=100) == []


def test_a_campaign_that_returns_to_the_index_asks_for_a_lease_again() -> None:
    holder = LeaseHolder()
    holder.lease(2)
    holder.load()
    [usage] = holder.due()
    holder.load(KEY)

    holder.answer(usage, granted=Micros(0))
    [again] = holder.due(after=2)
    holder.answer(again)

    assert holder.take() == 5


def test_a_campaign_keeps_its_lease_until_it_leaves_its_last_placement() -> None:
    holder = LeaseHolder()
    here = {KEY: terms()}
    holder.leases.update({1: here, 2: here}, at=holder.at)
    holder.lease(2)

    holder.leases.update({2: here}, at=holder.at)

    assert holder.take() == 5


def test_a_campaign_asks_for_more_if_its_lease_does_not_cover_a_raised_price() -> None:
    holder = LeaseHolder()
    holder.lease(2)

    holder.load(KEY, cost=5 * COST)
    [usage] = holder.due()

    assert holder.reason == "budget_pending"
    assert (usage.lease, usage.cost) == (5, 5 * COST)


@pytest.mark.parametrize("price", [0, 50_000])
def test_a_lease_that_was_asked_for_before_something_else_is_charged_is_returned(price: int) -> None:
    """Clicks out of a lease of impressions would be charged to it, and it would wait for their offers for ever."""
    prices = {number: msgspec.structs.replace(terms(), price=Micros(number)) for number in (0, 50_000)}
    holder = LeaseHolder()
    holder.leases.update({1: {KEY: prices[price]}}, at=holder.at)
    [asked] = holder.due()
    holder.leases.update({1: {KEY: prices[50_000 - price]}}, at=holder.at)

    holder.answer(asked)

    assert holder.leases.reserve(KEY, COST, holder.second) is None
    [returned] = holder.due(after=1)
    assert (returned.lease, returned.want, returned.given) == (5, 0, ())


def test_a_closing_process_makes_no_offers_and_returns_all_leases() -> None:
    holder = LeaseHolder(KEY, OTHER)
    mine, others = holder.due()
    holder.answer(mine)
    holder.take()

    holder.leases.close(at=holder.at)
    holder.answer(others, key=OTHER)
    is_settled = holder.leases.is_settled
    for usage, key in zip(holder.due(), (KEY, OTHER), strict=True):
        assert usage.want == 0
        holder.answer(usage, key=key, granted=Micros(0))

    assert not is_settled
    assert holder.leases.is_settled
    assert holder.due(after=100) == []


def test_the_number_of_reports_under_way_is_bounded() -> None:
    holder = LeaseHolder(*range(UNDER_WAY_MAX + 10))

    asked = holder.due(after=100, most=5_000)
    more = holder.due(most=5_000)
    holder.answer(asked[0], key=0)

    assert (len(asked), more) == (UNDER_WAY_MAX, [])
    assert len(holder.due(after=0, most=5_000)) == 1


def test_the_first_reports_of_many_campaigns_are_spread_over_time() -> None:
    holder = LeaseHolder(*range(1_000))
    holder.due(after=0.1, most=500)
    asked = holder.leases.asked

    holder.due(after=0.2, most=5_000)

    assert 400 <= asked <= 501
    assert holder.leases.asked == 1_000


class FakeCampaign:
    """Grants leases of any size, and counts what it has committed."""

    def __init__(self) -> None:
        self.granted: dict[int, int] = {}
        self.given: dict[int, int] = {}
        self.ends: dict[int, datetime] = {}
        self.reported = 0
        self.lease = 0

    def apply(self, usage: LeaseUsage, offers_granted: int, *, is_new_day: bool) -> LeaseAnswer | None:
        """Apply a report as a campaign's actor does."""
        if usage.report < self.reported:
            return None
        if usage.report > self.reported:
            if not usage.lease and (is_new_day or not self.lease):
                self.lease += 1
                self.granted[self.lease] = self.given[self.lease] = 0
                self.ends[self.lease] = MIDNIGHT + timedelta(days=is_new_day)
            lease = usage.lease or self.lease
            self.reported = usage.report
            self.given[lease] += sum(amount for _, amount in usage.given)
            unassigned = self.granted[lease] - self.given[lease]
            more = min(offers_granted * COST, max(0, usage.want - unassigned))
            self.granted[lease] = self.given[lease] + min(usage.want, unassigned + more)
        lease = usage.lease or self.lease
        return LeaseAnswer(
            campaign_id=CAMPAIGN,
            session=SESSION,
            report=usage.report,
            lease=lease,
            granted=Micros(self.granted[lease]),
            given=Micros(self.given[lease]),
            ends_at=self.ends[lease],
            verdict=BudgetVerdict.GRANTED,
        )


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["take", "take", "report", "arrive", "answer", "recall", "close", "day"]),
            st.integers(0, 5),
        ),
        min_size=30,  # A grant, midnight and an offer take six steps.
        max_size=80,
    )
)
def test_offers_never_exceed_the_grant_whatever_happens_to_messages(steps: list[tuple[str, int]]) -> None:
    """Reports and answers may arrive late, repeatedly, or never."""
    holder, campaign = LeaseHolder(), FakeCampaign()
    reports: list[LeaseUsage] = []
    answers: list[LeaseAnswer] = []
    taken: dict[int, int] = {}
    is_new_day = False
    for step, number in steps:
        match step:
            case "take":
                lease = holder.take()
                if lease is not None:
                    taken[lease] = taken.get(lease, 0) + COST
                    assert holder.second < campaign.ends[lease].timestamp(), "its day is over"
            case "report":
                reports += holder.due(after=0.3 * number)
            case "arrive" if reports:
                answer = campaign.apply(reports[-1 - number % len(reports)], number, is_new_day=is_new_day)
                answers += [] if answer is None else [answer]
            case "answer" if answers:
                holder.leases.on_answer(
                    answers[-1 - number % len(answers)], second=holder.second, at=holder.at
                )
            case "recall":
                recall = Recall(campaign_id=CAMPAIGN, session=SESSION)
                holder.leases.on_recall(recall, second=holder.second + 2 * number, at=holder.at)
            case "close" if number == 0:
                holder.leases.close(at=holder.at)
            case "day" if number < 2:
                # The clocks of this process and of the campaign's actor pass midnight one after the other.
                holder.second = max(holder.second, int(MIDNIGHT.timestamp())) if number else holder.second
                is_new_day = is_new_day or not number
            case _:
                pass

        assert all(amount <= campaign.granted[lease] for lease, amount in taken.items())
