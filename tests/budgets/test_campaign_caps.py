"""A campaign whose cap is full leaves its advertiser's day to the other campaigns."""

from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.campaign.headroom import compute_offers_left, find_unfit_budget
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.messages import (
    BudgetVerdict,
    CampaignCounts,
    CheckClock,
    CountedImpressions,
    CountsRequest,
    GiveBack,
    LeaseAnswer,
    MoneyKind,
    Recall,
    SessionOver,
    SpendReport,
    SpendUpdate,
)
from adloom.core.money import Micros
from tests.budgets.builders import SECOND, UNIT, CampaignBench, a_campaign
from tests.budgets.test_campaign_clicks import HOLD, by_click
from tests.budgets.test_campaign_reports import an_allotted_campaign, answer

BY_CLICK = {"cost": HOLD, "price": UNIT, "want_impressions": 0}
CAPS = ("impression_cap", "click_cap")
STEPS = 80


def a_capped_campaign(*, impressions: int = 0, clicks: int = 0, **caps: int) -> CampaignBench:
    """A campaign with ten units of its advertiser's day, of which so much was counted."""
    bench = an_allotted_campaign(daily_budget=None, hold_seconds=60, **caps)
    bench.take(CampaignCounts(impressions=impressions, clicks=clicks, until="0-0"))
    answer(bench, 10 * UNIT)
    return bench


def ask(bench: CampaignBench, report: int = 1, **fields: Any) -> LeaseAnswer:
    """Ask for four offers, because a visitor was turned away."""
    asked = {"want": Micros(4 * UNIT), "want_impressions": 4, "is_needed": True}
    return bench.answered(report=report, **{**asked, **fields})


def edit(bench: CampaignBench, **fields: Any) -> None:
    config = bench.state.configured
    bench.take(msgspec.structs.replace(config, version=config.version + 1, **fields))


def targets(bench: CampaignBench) -> list[int]:
    return [report.target for report in bench.sent(SpendReport)]


def test_a_campaign_at_its_impression_cap_gives_back_its_allotment_and_asks_for_nothing() -> None:
    bench = a_capped_campaign(impression_cap=5, impressions=5)

    refused = ask(bench)

    assert (refused.granted, refused.verdict) == (0, BudgetVerdict.IMPRESSION_CAP)
    assert targets(bench) == [0]
    answer(bench, 0)
    for report in (1, 2):  # The first answer was lost.
        assert ask(bench, report, lease=refused.lease).verdict is BudgetVerdict.IMPRESSION_CAP
        assert targets(bench) == [], "nothing is left to give back"


def test_money_is_asked_for_while_it_is_not_known_what_the_cap_leaves() -> None:
    bench = an_allotted_campaign(daily_budget=None, impression_cap=100)

    waiting = ask(bench)
    assert (waiting.granted, bench.published(Recall)) == (0, [])
    answer(bench, 0)
    assert targets(bench) == [4 * UNIT]

    answer(bench, 4 * UNIT)
    bench.take(CampaignCounts(impressions=0, clicks=0, until="0-0"))
    granted = ask(bench, 2, lease=waiting.lease)
    assert (granted.impressions_granted, granted.granted) == (4, 4 * UNIT)


def test_counts_of_before_a_cap_was_removed_grant_nothing() -> None:
    bench = a_capped_campaign(impression_cap=5)
    edit(bench, impression_cap=None)
    edit(bench, impression_cap=5)

    refused = ask(bench)
    assert refused.impressions_granted == 0, "nobody has told what was seen meanwhile"

    bench.take(CampaignCounts(impressions=4, clicks=0, until="9-0"))
    assert ask(bench, 2, lease=refused.lease).impressions_granted == 1


def test_money_is_granted_for_as_many_offers_as_the_cap_leaves() -> None:
    bench = a_capped_campaign(impression_cap=8, impressions=3)

    granted = [ask(bench, session=session) for session in (1, 2, 3)]

    assert [(one.impressions_granted, one.granted) for one in granted] == [(4, 4 * UNIT), (1, UNIT), (0, 0)]


def test_a_campaign_wants_money_again_when_holds_come_back_and_when_its_cap_is_raised() -> None:
    bench = a_capped_campaign(impression_cap=1)
    lease, second = ask(bench).lease, bench.second
    assert targets(bench) == [UNIT], "one is leased, and nine are given back"
    answer(bench, UNIT)
    ask(bench, 2, lease=lease, given=((second, UNIT),), impressions=((second, 1),))

    bench.wait(61)
    bench.take(CampaignCounts(impressions=0, clicks=0, until="0-0", complete_until=bench.second))
    answer(bench, 0)
    ask(bench, 3, lease=lease)
    assert targets(bench) == [UNIT], "one can be offered again"

    bench.take(CampaignCounts(impressions=1, clicks=0, until="1-0"))
    answer(bench, UNIT)
    ask(bench, 4, lease=lease)
    second = bench.second
    ask(bench, 5, lease=lease, given=((second, UNIT),), impressions=((second, 1),))
    assert bench.state.wanted == 0, "none can be offered"
    edit(bench, impression_cap=9)
    assert bench.published(SpendUpdate), "processes that were refused ask again"
    answer(bench, UNIT)
    ask(bench, 6, lease=lease)
    assert targets(bench) == [5 * UNIT], "one is on hold, and four of seven are for this process"


def test_what_an_offer_holds_of_a_cap_becomes_its_impression_when_it_is_seen() -> None:
    bench = a_capped_campaign(impression_cap=9)
    lease, second = ask(bench).lease, bench.second
    ask(
        bench, 2, lease=lease, want=0, given=((second, UNIT),), impressions=((second, 1),), want_impressions=0
    )
    assert compute_offers_left(bench.state) == 8

    for _ in range(2):
        bench.take(CountedImpressions(((lease, second, "5-0"),)))
        assert compute_offers_left(bench.state) == 8, "it was held, and was seen"
    bench.take(CampaignCounts(impressions=1, clicks=0, until="5-0"))
    assert compute_offers_left(bench.state) == 8, "and is in the tables"


def test_a_campaign_at_its_click_cap_gets_no_money_and_what_it_holds_for_clicks_gives_way() -> None:
    bench = a_capped_campaign(click_cap=2)
    lease = ask(bench, **BY_CLICK).lease
    gives = {"given": ((bench.second, 4 * HOLD),), "want": Micros(0)}
    ask(bench, 2, lease=lease, **gives, **BY_CLICK)
    for _ in range(2):
        bench.take(by_click(bench, lease))
    bench.wait(1)
    answer(bench, 10 * UNIT)

    refused = ask(bench, 3, lease=lease, **BY_CLICK)

    assert refused.verdict is BudgetVerdict.CLICK_CAP
    assert targets(bench) == [2 * UNIT]


def test_the_last_click_of_a_cap_is_paid_though_it_waits_for_the_advertiser() -> None:
    bench = a_capped_campaign(click_cap=1)
    bench.take(GiveBack())
    answer(bench, 0)
    ask(bench, **BY_CLICK)
    bench.take(by_click(bench))

    ask(bench, 2, lease=1, **BY_CLICK)
    answer(bench, 0)

    assert targets(bench) == [UNIT], "it still asks for what the click costs"
    answer(bench, UNIT)
    bench.wait(1)
    assert bench.charged == UNIT


def test_of_clicks_that_wait_each_price_is_compared_with_the_budgets_once_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = a_capped_campaign(click_cap=1_000)
    bench.take(GiveBack())
    answer(bench, 0)
    ask(bench, **BY_CLICK)
    for _ in range(20):
        bench.take(by_click(bench))
    assert len(bench.state.waiting) == 20
    compared: list[int] = []

    def count_and_compare(state: CampaignState, amount: Micros) -> BudgetVerdict | None:
        compared.append(amount)
        return find_unfit_budget(state, amount)

    monkeypatch.setattr("adloom.budgets.campaign.charges.find_unfit_budget", count_and_compare)
    bench.take(CheckClock())

    assert compared == [UNIT]


def test_a_campaign_by_impressions_at_its_click_cap_gets_no_money() -> None:
    bench = a_capped_campaign(click_cap=2, clicks=1)
    bench.take(CampaignCounts(impressions=9, clicks=2, until="2-0"))

    refused = ask(bench, want_impressions=0)

    assert (refused.granted, refused.verdict, targets(bench)) == (0, BudgetVerdict.CLICK_CAP, [0])


def test_leases_are_recalled_when_a_cap_is_lowered_below_what_they_may_offer() -> None:
    for capped, asked in (("impression_cap", {}), ("click_cap", BY_CLICK)):
        bench = a_capped_campaign(impressions=2, clicks=2, **{capped: 20})
        ask(bench, **asked)

        edit(bench, **{capped: 19})
        assert bench.published(Recall) == [], "enough is left"
        edit(bench, **{capped: 2})

        assert [recall.session for recall in bench.published(Recall)] == [1]

    # Also of a process that has not got the money for all of its offers.
    bench = a_capped_campaign(impressions=2, impression_cap=20)
    edit(bench, daily_budget=Micros(3 * UNIT))
    leased = ask(bench)
    assert (leased.impressions_granted, leased.granted) == (4, 3 * UNIT)
    edit(bench, impression_cap=2)
    assert [recall.session for recall in bench.published(Recall)] == [1]


def test_offers_of_a_paused_campaign_come_back_when_it_is_active_again() -> None:
    bench = a_capped_campaign(impression_cap=2)
    lease = ask(bench).lease
    ask(bench, 2, lease=lease, given=((bench.second, UNIT),), impressions=((bench.second, 1),))
    edit(bench, is_running=False)
    bench.wait(600)
    assert (bench.published(CountsRequest), bench.state.held) == ([], 0), "only the money has come back"

    edit(bench, is_running=True)

    assert len(bench.published(CountsRequest)) == 1
    assert compute_offers_left(bench.state) == 0
    bench.take(CampaignCounts(impressions=0, clicks=0, until="0-0", complete_until=bench.second))
    assert compute_offers_left(bench.state) + sum(one.unassigned for one in bench.state.offers.values()) == 2


def is_full(state: CampaignState) -> bool:
    """Whether nothing is left of a cap, neither here nor at processes."""
    assert state.counted is not None
    config, clicks = state.configured, state.clicked + (state.clicked_before or 0)
    used = state.counted.impressions + len(state.seen) + sum(one.outstanding for one in state.offers.values())
    is_leased = any(one.unassigned > one.ahead for one in state.offers.values())
    return (config.impression_cap is not None and used >= config.impression_cap and not is_leased) or (
        config.click_cap is not None and clicks >= config.click_cap
    )


class CappedCampaign:
    """A campaign with a cap, three processes, and an advertiser that allots what is asked for."""

    def __init__(self, caps: dict[str, int]) -> None:
        self.bench = a_capped_campaign(**caps)
        self.terms = BY_CLICK if "click_cap" in caps else {}
        self.reports = Counter[int]()
        self.entries = 0

    def act(self, action: str, number: int) -> None:
        bench, session = self.bench, number % 3 + 1
        lease = bench.state.find_lease(session, is_by_click=bool(self.terms))
        match action:
            case "ask" | "offer" if session not in bench.state.sessions_over:
                self._report(session, is_offering=action == "offer")
            case "see" if held := [(key, at) for key, one in bench.state.offers.items() for at in one.held]:
                self.entries += 1
                bench.take(CountedImpressions(((*held[0], f"{self.entries}-0"),)))
            case "click" if lease is not None and lease.is_by_click:
                bench.take(by_click(bench, lease.number))
            case "over":
                bench.take(SessionOver(session=session, second=bench.second))
            case "give back":
                bench.take(GiveBack(is_all=number == 0))
            case "allot":
                answer(bench, 20 * UNIT)
            case _:
                bench.take(CheckClock(), after=number * 9 * SECOND)

    def _report(self, session: int, *, is_offering: bool) -> None:
        bench = self.bench
        lease = bench.state.find_lease(session, is_by_click=bool(self.terms))
        offers = None if lease is None else bench.state.offers.get(lease.number)
        cost = self.terms.get("cost", UNIT)
        can_offer = lease is not None and lease.unassigned - lease.ahead >= cost
        if not self.terms:
            can_offer &= offers is not None and offers.unassigned > offers.ahead
        self.reports[session] += 1
        gives: dict[str, Any] = {}
        if is_offering and can_offer:
            gives = {"given": ((bench.second, cost),)}
            gives |= {} if self.terms else {"impressions": ((bench.second, 1),)}
        ask(
            bench,
            self.reports[session],
            session=session,
            lease=lease.number if lease else 0,
            **gives,
            **self.terms,
        )


@given(
    before=st.integers(0, 3), cap=st.integers(0, 9), seed=st.integers(0, 2**32), is_told_first=st.booleans()
)
def test_clicks_within_a_cap_are_paid_and_those_beyond_it_are_not_however_late_counts_and_confirms_are(
    before: int,
    cap: int,
    seed: int,
    is_told_first: bool,  # noqa: FBT001 - drawn
) -> None:
    """Some clicks were confirmed before the cap was set; all others are, after the tables have counted them."""
    bench, chance = CampaignBench(a_campaign(click_cap=cap)), Random(seed)  # noqa: S311 - not a secret
    clicks = confirmed = before
    read: list[int] = []  # Counts that are on their way.
    told: list[int] = []
    for action in [*(["count", "tell"] if is_told_first else []), *chance.choices(CLICK_ACTIONS, k=60)]:
        match action:
            case "click":
                clicks += 1
            case "count":
                read.append(clicks)
            case "tell" if read:
                told.append(read.pop(0))
                bench.take(CampaignCounts(impressions=99, clicks=told[-1], until=f"{told[-1]}-0"))
            case "confirm" if confirmed < clicks:
                confirmed += 1
                bench.take(by_click(bench, entry_id=f"{confirmed}-0"))
            case _:
                bench.wait(1)
    bench.wait(1)

    kinds = [row.kind for row in bench.rows]
    paid, left = kinds.count(MoneyKind.CHARGE), max(0, cap - before)
    assert len(kinds) == confirmed - before
    # Until a campaign hears of the clicks before, it takes the first for all of them.
    assert paid <= (left if is_told_first or not before else cap)
    # Where the first counts are beyond the cap, nobody knows which of those clicks were within it.
    if not told or told[0] <= cap:
        assert paid >= min(confirmed - before, left)


CLICK_ACTIONS = ("click", "click", "click", "confirm", "confirm", "confirm", "count", "tell", "wait")
ACTIONS = ("ask", "offer", "offer", "offer", "see", "click", "over", "give back", "allot", "allot", "wait")


@given(cap=st.integers(0, 6), kind=st.sampled_from(CAPS), seed=st.integers(0, 2**32))
def test_a_full_cap_wants_nothing_and_keeps_nothing_but_what_is_committed(
    cap: int, kind: str, seed: int
) -> None:
    world, chance = CappedCampaign({kind: cap}), Random(seed)  # noqa: S311 - not a secret
    bench = world.bench
    for _ in range(STEPS):
        leased, was_full = bench.state.leased, is_full(bench.state)
        waiting = bench.state.waiting  # Those within the cap still get what they cost.
        world.act(chance.choice(ACTIONS), chance.randrange(10))

        if was_full and is_full(bench.state):
            assert bench.state.leased <= leased, "no process gets money"
            for report in () if waiting or bench.state.waiting else bench.sent(SpendReport):
                assert report.target <= max(report.committed, bench.state.allotted), "it asks for no more"
                assert not report.is_needed
    if is_full(bench.state) and not bench.state.waiting:
        answer(bench, 20 * UNIT)
        bench.take(GiveBack())
        [report] = bench.sent(SpendReport) or [None]
        assert bench.state.allotted == bench.state.committed_today
        assert report is None or report.target == report.committed
