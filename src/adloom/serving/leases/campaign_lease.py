"""One campaign's lease in this process: what it may still give of it, what it has given, what it says of that."""

# pure

import math
from typing import Final

from adloom.budgets.messages import BudgetVerdict, LeaseAnswer, LeaseUsage
from adloom.core.money import Micros
from adloom.serving.index.rows import LeaseTerms

LEASE_SECONDS: Final = 2.0  # A lease is for about so long,
# or for so many offers: readers come in bursts, and to ask for each offer would cost more than the offer.
OFFERS_MIN: Final = 16
RECALLED_SECONDS: Final = 0.25  # Who is being shown keeps so much when it is asked back,
SHOWN_SECONDS: Final = 1  # which is who was offered as lately as that.
# What a burst comes to in a second is not known from less.
RATED_SECONDS_MIN: Final = 0.1
RATED_SECONDS_MAX: Final = 10.0
RATE_WEIGHT: Final = 0.3
PACED_SECONDS: Final = 1.0  # A paced budget is there bit by bit.
WAIT_SECONDS_MIN: Final = 0.25  # So long it takes others to return what they do not need.
WAIT_SECONDS_MAX: Final = 60.0
EARLY_SECONDS_MAX: Final = 1.0  # Each of four processes gets its turn until then.
BUDGET_PENDING: Final = "budget_pending"
NOTHING: Final = Micros(0)

REASON_BY_VERDICT: Final = {
    BudgetVerdict.DAILY_BUDGET: "daily_budget",
    BudgetVerdict.TOTAL_BUDGET: "total_budget",
    BudgetVerdict.ADVERTISER_BUDGET: "advertiser_budget",
    BudgetVerdict.PACING: "pacing",
}


class CampaignLease:
    """What this process has of one campaign."""

    __slots__ = (
        "due_at",
        "ends_second",
        "is_ending",
        "is_gated",
        "is_leaving",
        "is_needed",
        "is_recalled",
        "is_touched",
        "is_urgent",
        "left",
        "low",
        "number",
        "offered_second",
        "offers",
        "pending",
        "placements",
        "rate",
        "rated_at",
        "reason",
        "repeat_seconds",
        "report",
        "sent_at",
        "terms",
        "unreported",
        "verdict",
        "wait_seconds",
        "was_turned_away",
    )

    def __init__(self, terms: LeaseTerms) -> None:
        self.terms = terms
        self.placements: set[int] = set()
        self.report = 0
        self.reason: str | None = None  # Why it is not shown, as was last said; None is nothing.
        self.rate = 0.0  # Offers a second, those that could not be made included.
        self.rated_at = 0.0
        self.is_leaving = False  # The index has it no more.
        self.reset()

    def reset(self) -> None:
        """Forget the lease, and what was said of it: it is somebody else's matter now."""
        self.number: int = 0
        self.left = 0
        self.low = 0  # With no more than that left it is time to ask.
        self.ends_second = 0
        self.offered_second = 0
        self.unreported: dict[int, int] = {}
        self.pending: LeaseUsage | None = None
        self.sent_at = 0.0
        self.repeat_seconds = 0.0
        self.verdict: BudgetVerdict | None = None
        self.offers = 0  # Since the rate was last looked at.
        self.due_at: float | None = None
        self.is_gated = False  # It asks again only if somebody asks for the campaign.
        self.was_turned_away = False  # With its last report.
        self.is_needed = False  # A reader was not shown it.
        self.is_ending = False  # All that is left is to be returned.
        self.is_recalled = False  # All that is not needed at once is.
        self.is_touched = False
        self.is_urgent = False
        self.wait_seconds = WAIT_SECONDS_MIN

    def can_offer(self, second: int) -> bool:
        """Tell whether there is an offer's worth left."""
        return self.left >= self.terms.cost and second < self.ends_second

    @property
    def needs_report(self) -> bool:
        """Whether whoever granted the lease does not know all of it, or has something to get back."""
        return self.left > 0 or bool(self.unreported) or self.pending is not None

    def build_report(self, session: int, *, second: int, at: float) -> LeaseUsage:
        """Say what was given since the last report, and what is wanted; what is returned is set aside here."""
        assert self.pending is None, "one report at a time"
        self._update_rate(at)
        cost = self.terms.cost
        has_ended = second >= self.ends_second
        # The last of a lease is said of it; then another may be asked for.
        is_over = self.is_ending or (has_ended and self.needs_report)
        lease = 0 if has_ended and not is_over else self.number
        want = NOTHING if is_over else Micros(self._offers_wanted() * cost)
        self.left = min(self.left, want)
        self.is_needed |= self.left < cost and bool(self.unreported)  # Who was shown just now would be again.
        self.report += 1
        self.pending = LeaseUsage(
            session=session,
            report=self.report,
            lease=lease,
            given=tuple(self.unreported.items()),
            want=want,
            cost=cost,
            is_needed=self.is_needed and not is_over,
        )
        self.unreported = {}
        self.is_ending = False
        self.is_recalled = False
        self.is_touched = False
        return self.pending

    def apply_answer(self, answer: LeaseAnswer) -> None:
        """Take the answer to what was last said."""
        self.pending = None
        assert answer.lease == self.number or not self.unreported, "nothing is given out of what is not known"
        self.number = answer.lease
        self.left = max(0, answer.granted - answer.given - sum(self.unreported.values()))
        self.ends_second = int(answer.ends_at.timestamp())
        self.verdict = answer.verdict
        # An auction may charge less than the bid: who cannot pay its bid any more is out, whatever is left.
        self.low = max(self.left // 2, self.terms.cost - 1)

    def recall(self, second: int) -> None:
        """Return what is not needed here, where there is something: others have readers for it."""
        if self.left == 0:
            return
        if self.offered_second >= second - SHOWN_SECONDS:
            self.is_recalled = True
        else:
            self.is_ending = True

    def mark_satisfied(self) -> None:
        """Note that offers can be made again."""
        self.is_needed = False
        self.is_gated = False
        self.was_turned_away = False
        self.wait_seconds = WAIT_SECONDS_MIN

    def back_off(self, pending: LeaseUsage) -> float:
        """Tell after how long to ask again, if somebody asks for the campaign."""
        wait_seconds = self.wait_seconds
        # At first it may only have come too early: the advertiser allots a campaign something because it is asked for.
        is_too_early = self.verdict is BudgetVerdict.ADVERTISER_BUDGET and wait_seconds <= EARLY_SECONDS_MAX
        self.is_gated = not is_too_early
        self.was_turned_away = True
        if pending.want == 0 or self.verdict is BudgetVerdict.PACING:
            return PACED_SECONDS
        self.wait_seconds = min(2 * wait_seconds, WAIT_SECONDS_MAX)
        return wait_seconds

    def restart_rate(self, at: float) -> None:
        """Begin anew to count offers, after a pause in which there were none."""
        if at > self.rated_at + RATED_SECONDS_MAX:
            self.rate = 0.0
            self.rated_at = at

    def _update_rate(self, at: float) -> None:
        seconds = max(at - self.rated_at, RATED_SECONDS_MIN)
        rate = self.offers / seconds
        self.rate = rate if rate > self.rate else self.rate + (rate - self.rate) * RATE_WEIGHT
        self.rated_at = at
        self.offers = 0

    def _offers_wanted(self) -> int:
        if self.is_recalled:
            needed = max(1, math.ceil(self.rate * RECALLED_SECONDS))
            return min(needed, self.left // self.terms.cost)
        return max(OFFERS_MIN, int(self.rate * LEASE_SECONDS))
