"""What this process may give of campaigns' budgets: leases, taken ahead of need, and what was given of them.

Offers are given here and nowhere else, so that a process never gives more than it was granted. It
reports what it gave, and says what it wants, one report a campaign at a time; an answer that is late,
lost or overtaken changes nothing. What it returns it has set aside before it says so.

Nothing here looks at all campaigns, except where a session begins or ends: who has something to say is
on the agenda. `at` is a moment of a clock that never goes back; `second` is one of the calendar.
"""

# pure

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from adloom.budgets.messages import BudgetVerdict, LeaseAnswer, LeaseUsage, Recall
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.serving.index.rows import LeaseTerms
from adloom.serving.leases.campaign_lease import (
    BUDGET_PENDING,
    REASON_BY_VERDICT,
    WAIT_SECONDS_MAX,
    WAIT_SECONDS_MIN,
    CampaignLease,
)
from adloom.serving.leases.registry import LeaseRegistry, PlacementTerms
from adloom.serving.leases.timers import LeaseTimers

REPEAT_SECONDS: Final = 0.5  # An answer takes milliseconds: after this it is lost.
REPEAT_SECONDS_MAX: Final = 2.0
REPORT_SECONDS: Final = 5.0  # What was given is reported at least so often.
UPDATE_SECONDS: Final = 0.25  # Spend is told twice a second; to ask much more often is of no use.
SOON_SECONDS: Final = 0.05
UNDER_WAY_MAX: Final = 2_000  # Beyond this nobody else asks until somebody is answered.
ENDS_A_LOOK_MAX: Final = 2_000

IsWanted = Callable[[int], bool]  # Whether somebody asks for a campaign.
Said = tuple[LeaseTerms, LeaseUsage]


def _ignore() -> None:
    return None


class LocalLeases:
    """The leases of all campaigns that need one."""

    def __init__(self, session: int = 0, *, on_urgent: Callable[[], None] = _ignore) -> None:
        self.session = session
        self.is_void = False  # The session is over, as a brain says: begin another.
        self.is_closing = False
        self._on_urgent = on_urgent
        self._registry = LeaseRegistry()
        self._leases = self._registry.leases
        self._timers = LeaseTimers()
        self._urgent: list[int] = []
        self._touched: list[int] = []
        self.changes: dict[int, str | None] = {}  # Who may not be shown, and why; None is who may again.
        self._out = 0
        # Plain counters, read by a collector.
        self.under_way = 0
        self.asked = 0
        self.repeated = 0
        self.granted = 0
        self.refused: Counter[BudgetVerdict] = Counter()
        self.voided = 0
        self.late = 0

    # ------------------------------------------------------------ who may be given

    @property
    def has_changes(self) -> bool:
        """Whether somebody can be given, or can no longer, since `changes` was asked."""
        return bool(self.changes)

    def take_changes(self) -> dict[int, str | None]:
        """Take the news since this was last asked."""
        changes, self.changes = self.changes, {}
        return changes

    def list_excluded(self) -> dict[str, frozenset[int]]:
        """Tell who may not be shown, by the reason."""
        found: dict[str, set[int]] = {}
        for key, lease in self._leases.items():
            if lease.reason is not None:
                found.setdefault(lease.reason, set()).add(key)
        return {reason: frozenset(keys) for reason, keys in found.items()}

    @property
    def offerable_count(self) -> int:
        """How many campaigns can be given."""
        return len(self._leases) - self._out

    def update(self, placed: PlacementTerms, *, at: float) -> None:
        """Take what the index says; who is new asks for a lease, who is gone returns what it has."""
        changes = self._registry.update(placed)
        for key in changes.new:
            lease = self._leases[key]
            self._set_reason(key, lease, BUDGET_PENDING)
            self._timers.schedule(key, lease, self._timers.take_background_slot(at))
        for key in changes.changed - changes.new - changes.gone:
            lease = self._leases[key]
            lease.is_leaving = lease.is_ending = False
            if lease.left < lease.terms.cost or lease.reason is not None:
                # What is left pays for no offer any more, or was about to be returned: ask anew.
                self._set_reason(key, lease, BUDGET_PENDING)
                lease.is_gated = False
                self._schedule(key, lease, at)
        for key in changes.gone:
            self._release(key, self._leases[key], at)

    def list_placements(self, key: int) -> Iterable[int]:
        """Tell where a campaign may be shown."""
        lease = self._leases.get(key)
        return () if lease is None else lease.placements

    def reserve(self, key: int, cost: int, second: int) -> int | None:
        """Take one offer out of a campaign's lease: its number, or None where nothing is left."""
        lease = self._leases.get(key)
        if lease is None:
            return None
        lease.offers += 1
        left = lease.left - cost
        if left < 0 or second >= lease.ends_second:
            lease.is_needed = True
            self._update_reason(key, lease, second)
            self._mark_urgent(key, lease)
            return None
        # On the path of every offer: what the lease itself could do costs a call there.
        lease.left = left
        lease.unreported[second] = lease.unreported.get(second, 0) + cost
        lease.offered_second = second
        if left <= lease.low:
            if left < lease.terms.cost:
                self._update_reason(key, lease, second)
            self._mark_urgent(key, lease)
        elif not lease.is_touched:
            lease.is_touched = True
            self._touched.append(key)
        return lease.number

    # ------------------------------------------------------------ what is said

    @property
    def next_at(self) -> float | None:
        """When something may fall due; what is urgent is told at once to whoever asked for that."""
        return self._timers.next_at

    @property
    def next_end(self) -> int | None:
        """The second in which the next lease may end."""
        return self._timers.next_end

    def collect_reports(self, *, second: int, at: float, most: int, is_wanted: IsWanted) -> list[Said]:
        """Tell what is to be said now: reports that nobody has answered, and new ones."""
        self._catch_up(second, at)
        said: list[Said] = []
        for planned_at, key in self._timers.pop_repeats(at):
            lease = self._leases.get(key)
            if lease is not None and lease.pending is not None and lease.due_at == planned_at:
                said.append((lease.terms, self._repeat_report(key, lease, lease.pending, at)))
            if len(said) == most:
                return said
        # Who closes says everything: it may not be there any more when somebody answers.
        while len(said) < most and (self.is_closing or self.under_way < UNDER_WAY_MAX):
            planned_at, key = next(self._timers.pop_due(at), (0.0, None))
            if key is None:
                break
            lease = self._leases.get(key)
            if lease is not None and lease.pending is None and lease.due_at == planned_at:
                usage = self._build_report(key, lease, second, at, is_wanted)
                said += () if usage is None else ((lease.terms, usage),)
        return said

    def on_demand(self, key: int, *, at: float) -> None:
        """Hear that somebody asks for a campaign that waits for that."""
        lease = self._leases.get(key)
        if lease is not None and lease.is_gated:
            self._schedule(key, lease, max(at, lease.sent_at + lease.wait_seconds))

    # ------------------------------------------------------------ what is heard

    def on_answer(self, answer: LeaseAnswer, *, second: int, at: float) -> None:
        """Take an answer; only one to what was last said counts."""
        found = self._registry.find(answer.campaign_id)
        pending = None if found is None else found[1].pending
        if found is None or pending is None or _report_key(answer) != _report_key(pending):
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
            lease.reset()  # It was returned before, and we have not heard the answer.
        else:
            self._apply_grant(key, lease, answer)
        self._plan_next_report(key, lease, pending, second, at)

    def on_recall(self, recall: Recall, *, second: int, at: float) -> None:
        """Report at once, and return what is not needed here."""
        found = self._registry.find(recall.campaign_id)
        if found is None or recall.session != self.session:
            return
        key, lease = found
        if lease.needs_report:
            lease.recall(second)
            self._schedule(key, lease, at)

    def on_campaign_restored(self, campaign_id: CampaignId, *, at: float) -> None:
        """Hear that a campaign has something to give again."""
        found = self._registry.find(campaign_id)
        if found is not None:
            self._retry_soon(*found, at)

    def on_advertiser_restored(self, advertiser_id: AdvertiserId, *, at: float) -> None:
        """Hear that an advertiser has something to give again."""
        for key, lease in self._registry.list_of_advertiser(advertiser_id):
            self._retry_soon(key, lease, at)

    def on_spend_update(self, campaign_id: CampaignId, *, at: float) -> None:
        """Hear how a campaign stands, which it says often: only where it is asked for we try whether that helps."""
        found = self._registry.find(campaign_id)
        if found is not None and found[1].was_turned_away:
            key, lease = found
            lease.wait_seconds = WAIT_SECONDS_MIN
            self._schedule(key, lease, max(at, lease.sent_at + UPDATE_SECONDS))

    def on_campaign_exhausted(self, campaign_id: CampaignId, *, at: float) -> None:
        """Hear that nothing is left of a campaign's budget: to ask for it is of no use before there are news."""
        found = self._registry.find(campaign_id)
        if found is not None and found[1].is_gated and found[1].pending is None:
            key, lease = found
            lease.wait_seconds = WAIT_SECONDS_MAX
            self._timers.reschedule(key, lease, at + WAIT_SECONDS_MAX)

    # ------------------------------------------------------------ the session

    def start_session(self, session: int, *, at: float) -> None:
        """Begin another session: nothing of the one before may be given, and all ask anew."""
        self.session = session
        self.is_void = False
        self.under_way = 0
        self._timers.clear()
        self._urgent.clear()
        self._touched.clear()
        for key in [key for key, lease in self._leases.items() if lease.is_leaving]:
            self._registry.drop(key)
        for key, lease in self._leases.items():
            lease.reset()
            self._set_reason(key, lease, BUDGET_PENDING)
            self._timers.schedule(key, lease, at if lease.rate else self._timers.take_background_slot(at))

    def close(self, *, at: float) -> None:
        """Give nothing any more, and return everything."""
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
        """Whether everything is returned, and that is known."""
        return self.is_closing and not any(lease.needs_report for lease in self._leases.values())

    # ------------------------------------------------------------ steps

    def _release(self, key: int, lease: CampaignLease, at: float) -> None:
        self._set_reason(key, lease, None)  # Who is still there needs no lease any more.
        if lease.needs_report:
            lease.is_leaving = lease.is_ending = True
            self._schedule(key, lease, at)
        else:
            self._registry.drop(key)

    def _catch_up(self, second: int, at: float) -> None:
        """Put on the agenda what happened since the last look."""
        for keys, seconds in ((self._touched, REPORT_SECONDS), (self._urgent, 0.0)):
            for key in keys:
                lease = self._leases.get(key)
                if lease is not None:
                    lease.is_urgent = False
                    lease.restart_rate(at)
                    self._schedule(key, lease, at + seconds)
            keys.clear()
        for ends_second, key in self._timers.pop_ended(second, most=ENDS_A_LOOK_MAX):
            lease = self._leases.get(key)
            if lease is not None and lease.ends_second == ends_second:
                self._update_reason(key, lease, second)
                lease.is_gated = False
                lease.wait_seconds = WAIT_SECONDS_MIN
                self._schedule(key, lease, at if lease.rate else self._timers.take_background_slot(at))

    def _build_report(
        self, key: int, lease: CampaignLease, second: int, at: float, is_wanted: IsWanted
    ) -> LeaseUsage | None:
        """Say what is to be said of one campaign; nothing, where it waits until somebody asks for it."""
        lease.due_at = None
        if lease.is_gated and not lease.needs_report:
            if not is_wanted(key):
                return None
            lease.is_needed = True
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
        self.granted += lease.left > left
        if answer.verdict is not BudgetVerdict.GRANTED:
            self.refused[answer.verdict] += 1
        if lease.ends_second != ends_second:
            self._timers.schedule_end(key, lease.ends_second)

    def _plan_next_report(
        self, key: int, lease: CampaignLease, pending: LeaseUsage, second: int, at: float
    ) -> None:
        """Tell who may be shown after an answer, and when there is something to be said again."""
        self._update_reason(key, lease, second)
        if lease.is_leaving or self.is_closing:
            if lease.needs_report:
                lease.is_ending = True
                self._schedule(key, lease, at)
            elif lease.is_leaving:
                self._registry.drop(key)
        elif lease.is_ending or lease.is_recalled or (second >= lease.ends_second and pending.lease):
            self._schedule(key, lease, at)
        elif lease.can_offer(second):
            lease.mark_satisfied()
            if lease.unreported:
                self._schedule(key, lease, at + REPORT_SECONDS)
        else:
            # Also where the day of a new one is over: then it is here and not there, as clocks differ.
            self._schedule(key, lease, at + lease.back_off(pending))

    def _retry_soon(self, key: int, lease: CampaignLease, at: float) -> None:
        if lease.reason is not None and not self.is_closing:
            lease.wait_seconds = WAIT_SECONDS_MIN
            lease.is_gated = False
            self._schedule(key, lease, max(at, lease.sent_at + SOON_SECONDS))

    def _mark_urgent(self, key: int, lease: CampaignLease) -> None:
        """Ask at once, unless an answer is awaited, or it was just no."""
        if lease.is_urgent or lease.is_gated or lease.pending is not None:
            return
        lease.is_urgent = True
        self._urgent.append(key)
        if len(self._urgent) == 1:
            self._on_urgent()

    def _schedule(self, key: int, lease: CampaignLease, at: float) -> None:
        """Plan to say something; who waits for an answer says it after that."""
        if lease.pending is None:
            self._timers.schedule(key, lease, at)

    def _update_reason(self, key: int, lease: CampaignLease, second: int) -> None:
        """Tell whether a campaign may be shown, where that has changed."""
        if lease.is_leaving or (lease.can_offer(second) and not self.is_closing):
            self._set_reason(key, lease, None)
        elif lease.verdict is None or second >= lease.ends_second:
            self._set_reason(key, lease, BUDGET_PENDING)
        else:
            self._set_reason(key, lease, REASON_BY_VERDICT.get(lease.verdict, BUDGET_PENDING))

    def _set_reason(self, key: int, lease: CampaignLease, reason: str | None) -> None:
        if reason != lease.reason:
            self._out += (reason is not None) - (lease.reason is not None)
            lease.reason = reason
            self.changes[key] = reason


def _report_key(message: LeaseAnswer | LeaseUsage) -> tuple[int, int]:
    return message.session, message.report
