"""One campaign's lease in this process: what is left of it, what was spent, and the reports about it."""

# pure

import math
from dataclasses import dataclass, field, fields
from typing import Final

from adloom.budgets.messages import BudgetVerdict, LeaseAnswer, LeaseUsage
from adloom.core.money import Micros
from adloom.serving.index.rows import LeaseTerms

# A lease lasts about so long, or so many offers: visitors come in bursts, and asking for each offer would
# cost more than the offer.
LEASE_SECONDS: Final = 2.0
OFFERS_MIN: Final = 16
# On recall, keep 0.25 s worth of budget if the campaign was offered within the last second.
RECALLED_SECONDS: Final = 0.25
SHOWN_SECONDS: Final = 1
# A shorter burst says nothing about the rate of a second.
RATED_SECONDS_MIN: Final = 0.1
RATED_SECONDS_MAX: Final = 10.0
RATE_WEIGHT: Final = 0.3
PACED_SECONDS: Final = 1.0  # A paced budget is released bit by bit.
WAIT_SECONDS_MIN: Final = 0.25  # Other processes take so long to return what they do not need.
WAIT_SECONDS_MAX: Final = 60.0
EARLY_SECONDS_MAX: Final = 1.0  # Until then each of four processes was served once.
BUDGET_PENDING: Final = "budget_pending"

REASON_BY_VERDICT: Final = {
    BudgetVerdict.DAILY_BUDGET: "daily_budget",
    BudgetVerdict.TOTAL_BUDGET: "total_budget",
    BudgetVerdict.ADVERTISER_BUDGET: "advertiser_budget",
    BudgetVerdict.PACING: "pacing",
    BudgetVerdict.IMPRESSION_CAP: "impression_cap",
    BudgetVerdict.CLICK_CAP: "click_cap",
}


@dataclass(slots=True, eq=False)
class CampaignLease:
    """What this process may spend of one campaign's budget."""

    terms: LeaseTerms
    placements: set[int] = field(default_factory=set[int])
    report: int = 0
    reason: str | None = None  # Why it is excluded; None: it may be offered.
    rate: float = 0.0  # Offers a second, including those that could not be made.
    rated_at: float = 0.0
    is_leaving: bool = False  # The index no longer has it.
    multiplier: float = 1.0  # Of its bids.
    requests_seen: int = 0  # Requests that it could have bid on, up to the last report,
    reported_traffic: tuple[int, int] = (0, 0)  # which is this one.
    # Of the lease and its reports: forgotten with their session.
    number: int = 0
    left: int = 0
    low: int = 0  # With no more than this left, ask.
    ends_second: int = 0
    offered_second: int = 0
    unreported: dict[int, int] = field(default_factory=dict[int, int])
    # Of an impression cap, in offers.
    impressions_left: int = 0
    impressions_low: int = 0
    unreported_impressions: dict[int, int] = field(default_factory=dict[int, int])
    pending: LeaseUsage | None = None
    sent_at: float = 0.0
    repeat_seconds: float = 0.0
    verdict: BudgetVerdict | None = None
    offers: int = 0  # Since the rate was last updated.
    throttle: float = 0.0  # The share of offers to leave out, by the pace,
    weight: float = 1.0  # how many would have been made for each that is,
    requests: float = 0.0  # and how many in all since the last report.
    missed: int = 0  # Offers since then that could not be made.
    due_at: float | None = None
    is_gated: bool = False  # It asks again only if the campaign is requested.
    was_turned_away: bool = False  # By the answer to its last report.
    is_needed: bool = False  # A visitor missed it.
    is_ending: bool = False  # Return all that is left.
    is_recalled: bool = False  # Return all that is not needed at once.
    is_touched: bool = False
    is_urgent: bool = False
    wait_seconds: float = WAIT_SECONDS_MIN

    def reset(self) -> None:
        """Forget the lease and its reports: the session that they belong to is over."""
        fresh = CampaignLease(self.terms)
        for name in OF_A_SESSION:
            setattr(self, name, getattr(fresh, name))

    def can_offer(self, second: int) -> bool:
        """Whether the price of an offer is left."""
        is_within_cap = self.impressions_left > 0 or not self.terms.is_capped
        return self.left >= self.terms.cost and second < self.ends_second and is_within_cap

    def find_reason(self, second: int, *, is_closing: bool) -> str | None:
        """Return why the campaign may not be offered."""
        if self.is_leaving or (self.can_offer(second) and not is_closing):
            return None
        if self.verdict is None or second >= self.ends_second:
            return BUDGET_PENDING
        return REASON_BY_VERDICT.get(self.verdict, BUDGET_PENDING)

    def count_impression(self, second: int) -> bool:
        """Count an offer against the impression cap, or return False if none is left."""
        if self.impressions_left <= 0 or second >= self.ends_second:
            return False
        self.impressions_left -= 1
        self.unreported_impressions[second] = self.unreported_impressions.get(second, 0) + 1
        return True

    @property
    def has_rest(self) -> bool:
        """Whether something can still be offered, or returned."""
        return self.left > 0 or self.impressions_left > 0

    @property
    def needs_report(self) -> bool:
        """Whether the budget service does not know everything yet, or has something to get back."""
        is_known = not self.unreported and not self.unreported_impressions
        return self.has_rest or not is_known or self.pending is not None

    def is_quiet(self, second: int) -> bool:
        """Whether it may be offered, and there is nothing to report or to return."""
        is_due = self.is_recalled or self.is_ending or self.is_needed or self.is_touched
        return self.can_offer(second) and not self.unreported and not is_due

    def build_report(self, session: int, *, second: int, at: float) -> LeaseUsage:
        """Report what was spent since the last report, and what is wanted; what is returned is set aside here."""
        assert self.pending is None, "one report at a time"
        offers_made = self.offers - self.missed
        self._update_rate(at)
        cost = self.terms.cost
        has_ended = second >= self.ends_second
        # First report the rest of an ended lease; then ask for another.
        is_over = self.is_ending or (has_ended and self.needs_report)
        lease = 0 if has_ended and not is_over else self.number
        offers = 0 if is_over else self._count_offers_wanted()
        want, want_impressions = Micros(offers * cost), offers if self.terms.is_capped else 0
        self.left = min(self.left, want)
        self.impressions_left = min(self.impressions_left, want_impressions)
        # It was offered just now, so it would be again.
        is_short = self.left < cost or (self.terms.is_capped and not self.impressions_left)
        self.is_needed |= is_short and bool(self.unreported)
        self.report += 1
        self.pending = LeaseUsage(
            session=session,
            report=self.report,
            lease=lease,
            given=tuple(self.unreported.items()),
            impressions=tuple(self.unreported_impressions.items()),
            want_impressions=want_impressions,
            want=want,
            cost=cost,
            price=self.terms.price,
            is_needed=self.is_needed and not is_over,
            requests=int(self.requests),
            offers=offers_made,
        )
        self.requests %= 1.0
        self.missed = 0
        self.unreported = {}
        self.unreported_impressions = {}
        self.is_ending = False
        self.is_recalled = False
        self.is_touched = False
        return self.pending

    def apply_answer(self, answer: LeaseAnswer) -> None:
        pending, self.pending = self.pending, None
        assert answer.lease == self.number or not self.unreported, "nothing is spent out of an unknown lease"
        self.number = answer.lease
        self.left = max(0, answer.granted - answer.given - sum(self.unreported.values()))
        offered = sum(self.unreported_impressions.values())
        self.impressions_left = max(0, answer.impressions_granted - answer.impressions_given - offered)
        self.impressions_low = self.impressions_left // 2
        self.ends_second = int(answer.ends_at.timestamp())
        if pending is not None and bool(pending.price) != bool(self.terms.price):
            self.ends_second = 0  # As in `change_terms`.
        self.verdict = answer.verdict
        self.throttle = answer.throttle
        self.weight = 1 / (1 - answer.throttle) if answer.throttle < 1 else 0.0
        # An auction may charge less than the bid; a campaign that cannot pay its bid is out all the same.
        self.low = max(self.left // 2, self.terms.cost - 1)

    def recall(self, second: int) -> None:
        """Return what is not needed here: other processes have visitors for it."""
        if not self.has_rest:
            return
        if self.offered_second >= second - SHOWN_SECONDS:
            self.is_recalled = True
        else:
            self.is_ending = True

    def change_terms(self, terms: LeaseTerms) -> None:
        """Use other terms; a lease of what is charged otherwise has ended."""
        if bool(terms.price) != bool(self.terms.price):
            self.ends_second = 0
        self.terms = terms

    def mark_satisfied(self) -> None:
        self.is_needed = False
        self.is_gated = False
        self.was_turned_away = False
        self.wait_seconds = WAIT_SECONDS_MIN

    def back_off(self, pending: LeaseUsage) -> float:
        """Return the seconds to wait before asking again, if the campaign is requested then."""
        wait_seconds = self.wait_seconds
        # At first it may only be too early: the advertiser allots budget to a campaign because it asks.
        is_too_early = self.verdict is BudgetVerdict.ADVERTISER_BUDGET and wait_seconds <= EARLY_SECONDS_MAX
        self.is_gated = not is_too_early
        self.was_turned_away = True
        if pending.want == 0 or self.verdict is BudgetVerdict.PACING:
            return PACED_SECONDS
        self.wait_seconds = min(2 * wait_seconds, WAIT_SECONDS_MAX)
        return wait_seconds

    def restart_rate(self, at: float) -> None:
        """Count offers afresh after a pause without any."""
        if at > self.rated_at + RATED_SECONDS_MAX:
            self.rate = 0.0
            self.rated_at = at

    def _update_rate(self, at: float) -> None:
        seconds = max(at - self.rated_at, RATED_SECONDS_MIN)
        rate = self.offers / seconds
        self.rate = rate if rate > self.rate else self.rate + (rate - self.rate) * RATE_WEIGHT
        self.rated_at = at
        self.offers = 0

    def _count_offers_wanted(self) -> int:
        if self.is_recalled:
            needed = max(1, math.ceil(self.rate * RECALLED_SECONDS))
            most = self.left // self.terms.cost
            return min(needed, most, self.impressions_left) if self.terms.is_capped else min(needed, most)
        # An ad that is likely to be clicked holds up to the price of a click.
        a_click = -(-self.terms.price // self.terms.cost)
        return max(OFFERS_MIN, int(self.rate * LEASE_SECONDS), a_click)


_KEPT: Final = {
    *("terms", "placements", "report", "reason", "rate", "rated_at", "is_leaving"),
    *("multiplier", "requests_seen", "reported_traffic"),
}
OF_A_SESSION: Final = tuple(one.name for one in fields(CampaignLease) if one.name not in _KEPT)
