"""What this process may still spend of campaigns' budgets: leases, and what was spent of them.

All offers take their money from here, so a process never spends more than it was granted. It reports what
it spent and asks for more, one report per campaign at a time. A late, lost or overtaken answer changes
nothing. Money to be returned is set aside before the report says so. `at` is monotonic, `second` is Unix time.
"""

# pure

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from adloom.budgets.messages import COUNTED_LEASE, BudgetVerdict, LeaseAnswer, LeaseUsage, Recall
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.serving.index.rows import LeaseTerms
from adloom.serving.leases.campaign_lease import (
    BUDGET_PENDING,
    WAIT_SECONDS_MAX,
    WAIT_SECONDS_MIN,
    CampaignLease,
)
from adloom.serving.leases.registry import LeaseRegistry, LeaseTimers, PlacementTerms

REPEAT_SECONDS: Final = 0.5  # An answer takes milliseconds: after this it is lost.
REPEAT_SECONDS_MAX: Final = 2.0
REPORT_SECONDS: Final = 5.0  # Spend is reported at least so often.
LOWERED_SECONDS: Final = 60.0  # A campaign whose bid was lowered, and that offers nothing, reports so often.
UPDATE_SECONDS: Final = 0.25  # Spend is announced twice a second; asking much more often is of no use.
SOON_SECONDS: Final = 0.05
UNDER_WAY_MAX: Final = 2_000  # Reports without an answer; beyond this no campaign asks until one is answered.
ENDS_AT_ONCE_MAX: Final = 2_000

IsWanted = Callable[[int], bool]  # Whether a placement of the campaign is requested.
Report = tuple[LeaseTerms, LeaseUsage]


class LocalLeases:
    """The leases of all campaigns that need one."""

    def __init__(
        self,
        session: int = 0,
        *,
        on_urgent: Callable[[], None] = lambda: None,
        draw: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self.session = session
        self.draw = draw
        self.is_void = False  # The budget service has ended the session: start another.
        self.is_closing = False
        self._on_urgent = on_urgent
        self.registry = LeaseRegistry()
        self._leases = self.registry.leases
        self._timers = LeaseTimers()
        self._urgent: list[int] = []
        self._touched: list[int] = []
        # By campaign, why it is excluded; None: it may be offered again.
        self.changes: dict[int, str | None] = {}
        self._out = 0
        # Plain counters, read by a collector.
        self.under_way = 0
        self.asked = 0
        self.repeated = 0
        self.granted = 0
        self.refused: Counter[BudgetVerdict] = Counter()
        self.voided = 0
        self.late = 0
        self.left_out = 0

    def take_changes(self) -> dict[int, str | None]:
        """Return why campaigns are excluded, or None, for those that changed since the last call."""
        changes, self.changes = self.changes, {}
        return changes

    @property
    def offerable_count(self) -> int:
        return len(self._leases) - self._out

    def update(self, placed: PlacementTerms, *, at: float) -> None:
        """Apply a new index: a new campaign asks for a lease, one that is gone returns its own."""
        changes = self.registry.update(placed)
        for key in changes.new:
            lease = self._leases[key]
            self._set_reason(key, lease, BUDGET_PENDING)
            self._timers.schedule(key, lease, self._timers.take_background_slot(at))
        for key in changes.changed - changes.new - changes.gone:
            lease = self._leases[key]
            lease.is_leaving = lease.is_ending = False
            is_usable = lease.ends_second > 0 and lease.can_offer(lease.ends_second - 1)
            if not is_usable or lease.reason is not None:
                # What is left does not pay for an offer, or was about to be returned: ask again.
                self._set_reason(key, lease, BUDGET_PENDING)
                lease.is_gated = False
                self._schedule(key, lease, at)
        for key in changes.gone:
            self._release(key, self._leases[key], at)

    def list_placements(self, key: int) -> Iterable[int]:
        lease = self._leases.get(key)
        return () if lease is None else lease.placements

    def is_left_out(self, key: int) -> bool:
        """Draw whether the pace of a campaign leaves it out of a request."""
        lease = self._leases.get(key)
        if lease is None or not lease.throttle or self.draw() >= lease.throttle:
            return False
        self.left_out += 1
        if not lease.is_touched:
            self._mark_touched(key, lease)
        return True

    def reserve(self, key: int, cost: int, second: int, is_drawn: bool = False) -> int | None:  # noqa: FBT001, FBT002 - names would cost
        """Take the price of an offer out of a lease. Returns its number, or None if it is left out, or too little is left."""
        lease = self._leases.get(key)
        if lease is None:
            return None
        if lease.throttle and not is_drawn and self.is_left_out(key):
            return None
        lease.requests += lease.weight
        lease.offers += 1
        left = lease.left - cost
        number, is_low = lease.number, left <= lease.low
        if lease.terms.is_capped:
            if left < 0 or not lease.count_impression(second):
                left = -1
            number |= COUNTED_LEASE
            is_low |= lease.impressions_left <= lease.impressions_low
        if left < 0 or second >= lease.ends_second:
            lease.missed += 1
            lease.is_needed = True
            self._update_reason(key, lease, second)
            self._mark_urgent(key, lease)
            return None
        # On the path of every offer: a method of the lease would cost a call.
        lease.left = left
        lease.unreported[second] = lease.unreported.get(second, 0) + cost
        lease.offered_second = second
        if is_low:
            if not lease.can_offer(second):
                self._update_reason(key, lease, second)
            self._mark_urgent(key, lease)
        elif not lease.is_touched:
            self._mark_touched(key, lease)
        return number

    @property
    def next_at(self) -> float | None:
        """When the next report may be due; `on_urgent` announces urgent ones."""
        return self._timers.next_at

    @property
    def next_end(self) -> int | None:
        return self._timers.next_end

    def collect_reports(self, *, second: int, at: float, most: int, is_wanted: IsWanted) -> list[Report]:
        """Return the reports to send now: unanswered ones again, and new ones."""
        self._catch_up(second, at)
        reports: list[Report] = []
        for planned_at, key in self._timers.pop_repeats(at):
            lease = self._leases.get(key)
            if lease is not None and lease.pending is not None and lease.due_at == planned_at:
                reports.append((lease.terms, self._repeat_report(key, lease, lease.pending, at)))
            if len(reports) == most:
                return reports
        # A closing process sends everything: it may be gone when the answer comes.
        while len(reports) < most and (self.is_closing or self.under_way < UNDER_WAY_MAX):
            planned_at, key = next(self._timers.pop_due(at), (0.0, None))
            if key is None:
                break
            lease = self._leases.get(key)
            if lease is not None and lease.pending is None and lease.due_at == planned_at:
                usage = self._build_report(key, lease, second, at, is_wanted)
                reports += () if usage is None else ((lease.terms, usage),)
        return reports

    def on_demand(self, key: int, *, at: float) -> None:
        """Let a campaign ask that waited until one of its placements is requested."""
        lease = self._leases.get(key)
        if lease is not None and lease.is_gated:
            self._schedule(key, lease, max(at, lease.sent_at + lease.wait_seconds))

    def on_answer(self, answer: LeaseAnswer, *, second: int, at: float) -> None:
        """Apply an answer; only one to the last report counts."""
        found = self.registry.find(answer.campaign_id)
        pending = None if found is None else found[1].pending
        if found is None or pending is None or answer.report_key != pending.report_key:
            self.late += 1
            return
        key, lease = found
        self.under_way -= 1
        lease.due_at = None
        is_void = answer.lease == 0 or pending.lease not in {0, answer.lease}
        if is_void and pending.want > 0:
            self.voided += 1
            self.is_void = True
            lease.reset()
            self._update_reason(key, lease, second)
            return
        if is_void:
            lease.reset()  # It was returned before, and the answer was lost.
        else:
            self._apply_grant(key, lease, answer)
        self._plan_next_report(key, lease, pending, second, at)

    def on_recall(self, recall: Recall, *, second: int, at: float) -> None:
        """Report at once, and return what is not needed here."""
        found = self.registry.find(recall.campaign_id)
        if found is None or recall.session != self.session:
            return
        key, lease = found
        if lease.needs_report:
            lease.recall(second)
            self._schedule(key, lease, at)

    def on_campaign_restored(self, campaign_id: CampaignId, *, at: float) -> None:
        found = self.registry.find(campaign_id)
        if found is not None:
            self._retry_soon(*found, at)

    def on_advertiser_restored(self, advertiser_id: AdvertiserId, *, at: float) -> None:
        for key, lease in self.registry.list_of_advertiser(advertiser_id):
            self._retry_soon(key, lease, at)

    def on_spend_update(self, campaign_id: CampaignId, *, at: float) -> None:
        """Spend is announced often, so only a campaign that was refused and is requested asks again."""
        found = self.registry.find(campaign_id)
        if found is not None and found[1].was_turned_away:
            key, lease = found
            lease.wait_seconds = WAIT_SECONDS_MIN
            self._schedule(key, lease, max(at, lease.sent_at + UPDATE_SECONDS))

    def on_campaign_exhausted(self, campaign_id: CampaignId, *, at: float) -> None:
        """Nothing is left of a budget: asking is of no use until it is restored."""
        found = self.registry.find(campaign_id)
        if found is None:
            return
        key, lease = found
        if lease.terms.price and lease.has_rest:
            # What is left would still hold offers, and pays for no click.
            lease.is_ending = True
            self._schedule(key, lease, at)
        elif lease.is_gated and lease.pending is None:
            lease.wait_seconds = WAIT_SECONDS_MAX
            self._timers.reschedule(key, lease, at + WAIT_SECONDS_MAX)

    def start_session(self, session: int, *, at: float) -> None:
        """Start another session: leases of the one before are void, and every campaign asks again."""
        self.session = session
        self.is_void = False
        self.under_way = 0
        self._timers.clear()
        self._urgent.clear()
        self._touched.clear()
        for key in [key for key, lease in self._leases.items() if lease.is_leaving]:
            self.registry.drop(key)
        for key, lease in self._leases.items():
            lease.reset()
            self._set_reason(key, lease, BUDGET_PENDING)
            self._timers.schedule(key, lease, at if lease.rate else self._timers.take_background_slot(at))

    def close(self, *, at: float) -> None:
        self.is_closing = True
        for key, lease in self._leases.items():
            self._set_reason(key, lease, BUDGET_PENDING)
            if lease.needs_report:
                lease.is_ending = True
                self._schedule(key, lease, at)
            else:
                lease.due_at = None

    @property
    def is_settled(self) -> bool:
        """Whether everything is returned, and the return is confirmed."""
        return self.is_closing and not any(lease.needs_report for lease in self._leases.values())

    def _release(self, key: int, lease: CampaignLease, at: float) -> None:
        self._set_reason(key, lease, None)  # If it is still offered, it needs no lease any more.
        if lease.needs_report:
            lease.is_leaving = lease.is_ending = True
            self._schedule(key, lease, at)
        else:
            self.registry.drop(key)

    def _catch_up(self, second: int, at: float) -> None:
        """Schedule reports for what happened since the last call."""
        for keys, seconds in ((self._touched, REPORT_SECONDS), (self._urgent, 0.0)):
            for key in keys:
                lease = self._leases.get(key)
                if lease is not None:
                    lease.is_urgent = False
                    lease.restart_rate(at)
                    self._schedule(key, lease, at + seconds)
            keys.clear()
        for ends_second, key in self._timers.pop_ended(second, most=ENDS_AT_ONCE_MAX):
            lease = self._leases.get(key)
            if lease is not None and lease.ends_second == ends_second:
                self._update_reason(key, lease, second)
                lease.is_gated = False
                lease.wait_seconds = WAIT_SECONDS_MIN
                self._schedule(key, lease, at if lease.rate else self._timers.take_background_slot(at))

    def _build_report(
        self, key: int, lease: CampaignLease, second: int, at: float, is_wanted: IsWanted
    ) -> LeaseUsage | None:
        """Return the report of a campaign, or None while it waits for demand."""
        lease.due_at = None
        if lease.is_gated and not lease.needs_report:
            if not is_wanted(key):
                return None
            lease.is_needed = True
        if lease.is_quiet(second) and not is_wanted(key):
            self._schedule(key, lease, at + LOWERED_SECONDS)
            return None
        usage = lease.build_report(self.session, second=second, at=at)
        self._update_reason(key, lease, second)
        self.under_way += 1
        self.asked += 1
        lease.sent_at = at
        lease.repeat_seconds = REPEAT_SECONDS
        self._timers.schedule_repeat(key, lease, at + REPEAT_SECONDS)
        return usage

    def _repeat_report(self, key: int, lease: CampaignLease, pending: LeaseUsage, at: float) -> LeaseUsage:
        lease.repeat_seconds = min(2 * lease.repeat_seconds, REPEAT_SECONDS_MAX)
        self.repeated += 1
        lease.sent_at = at
        self._timers.schedule_repeat(key, lease, at + lease.repeat_seconds)
        return pending

    def _apply_grant(self, key: int, lease: CampaignLease, answer: LeaseAnswer) -> None:
        left, ends_second = lease.left, lease.ends_second
        lease.apply_answer(answer)
        self.registry.note_answer(key, lease, answer.multiplier)
        self.granted += lease.left > left
        if answer.verdict is not BudgetVerdict.GRANTED:
            self.refused[answer.verdict] += 1
        if lease.ends_second != ends_second:
            self._timers.schedule_end(key, lease.ends_second)

    def _plan_next_report(
        self, key: int, lease: CampaignLease, pending: LeaseUsage, second: int, at: float
    ) -> None:
        """After an answer: update whether the campaign is excluded, and schedule its next report."""
        self._update_reason(key, lease, second)
        if lease.is_leaving or self.is_closing:
            if lease.needs_report:
                lease.is_ending = True
                self._schedule(key, lease, at)
            elif lease.is_leaving:
                self.registry.drop(key)
        elif lease.is_ending or lease.is_recalled or (second >= lease.ends_second and pending.lease):
            self._schedule(key, lease, at)
        elif lease.can_offer(second):
            lease.mark_satisfied()
            if lease.unreported or lease.multiplier < 1:
                # At a lowered bid it may win nothing, and another is decided only when it reports.
                self._schedule(key, lease, at + (REPORT_SECONDS if lease.unreported else LOWERED_SECONDS))
        else:
            # Also if the day of a new lease is over here but not at the budget service: clocks differ.
            self._schedule(key, lease, at + lease.back_off(pending))

    def _retry_soon(self, key: int, lease: CampaignLease, at: float) -> None:
        if lease.reason is not None and not self.is_closing:
            lease.wait_seconds = WAIT_SECONDS_MIN
            lease.is_gated = False
            self._schedule(key, lease, max(at, lease.sent_at + SOON_SECONDS))

    def _mark_urgent(self, key: int, lease: CampaignLease) -> None:
        """Ask at once, unless an answer is pending or was just a refusal."""
        if lease.is_urgent or lease.is_gated or lease.pending is not None:
            return
        lease.is_urgent = True
        self._urgent.append(key)
        if len(self._urgent) == 1:
            self._on_urgent()

    def _mark_touched(self, key: int, lease: CampaignLease) -> None:
        lease.is_touched = True
        self._touched.append(key)

    def _schedule(self, key: int, lease: CampaignLease, at: float) -> None:
        """Schedule a report; while an answer is pending it waits for that."""
        if lease.pending is None:
            self._timers.schedule(key, lease, at)

    def _update_reason(self, key: int, lease: CampaignLease, second: int) -> None:
        """Record whether a campaign may be offered, and if not, why."""
        self._set_reason(key, lease, lease.find_reason(second, is_closing=self.is_closing))

    def _set_reason(self, key: int, lease: CampaignLease, reason: str | None) -> None:
        if reason != lease.reason:
            self._out += (reason is not None) - (lease.reason is not None)
            lease.reason = reason
            self.changes[key] = reason
