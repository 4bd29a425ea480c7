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

from adloom.budgets.messages import LeaseAnswer, Recall, Usage, Verdict
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.serving.index.offer_price import LeaseTerms
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
Said = tuple[LeaseTerms, Usage]


def _ignore() -> None:
    return None


class LocalLeases:
    """The leases of all campaigns that need one."""

    def __init__(self, session: int = 0, *, on_urgent: Callable[[], None] = _ignore) -> None:
        self.session = session
        self.is_void = False  # The session is over, as a brain says: begin another.
        self.is_closing = False
        self._on_urgent = on_urgent
        self._register = LeaseRegistry()
        self._shares = self._register.shares
        self._agenda = LeaseTimers()
        self._urgent: list[int] = []
        self._touched: list[int] = []
        self.news: dict[int, str | None] = {}  # Who may not be shown, and why; None is who may again.
        self._out = 0
        # Plain counters, read by a collector.
        self.under_way = 0
        self.asked = 0
        self.repeated = 0
        self.granted = 0
        self.refused: Counter[Verdict] = Counter()
        self.voided = 0
        self.late = 0

    # ------------------------------------------------------------ who may be given

    @property
    def has_news(self) -> bool:
        """Whether somebody can be given, or can no longer, since `changes` was asked."""
        return bool(self.news)

    def take_changes(self) -> dict[int, str | None]:
        """Take the news since this was last asked."""
        news, self.news = self.news, {}
        return news

    def list_excluded(self) -> dict[str, frozenset[int]]:
        """Tell who may not be shown, by the reason."""
        found: dict[str, set[int]] = {}
        for key, share in self._shares.items():
            if share.reason is not None:
                found.setdefault(share.reason, set()).add(key)
        return {reason: frozenset(keys) for reason, keys in found.items()}

    @property
    def leases(self) -> int:
        """How many campaigns can be given."""
        return len(self._shares) - self._out

    def update(self, placed: PlacementTerms, *, at: float) -> None:
        """Take what the index says; who is new asks for a lease, who is gone returns what it has."""
        learned = self._register.update(placed)
        for key in learned.new:
            share = self._shares[key]
            self._set_reason(key, share, BUDGET_PENDING)
            self._agenda.schedule(key, share, self._agenda.take_background_slot(at))
        for key in learned.changed - learned.new - learned.gone:
            share = self._shares[key]
            share.is_leaving = share.is_ending = False
            if share.left < share.terms.cost or share.reason is not None:
                # What is left pays for no offer any more, or was about to be returned: ask anew.
                self._set_reason(key, share, BUDGET_PENDING)
                share.is_gated = False
                self._schedule(key, share, at)
        for key in learned.gone:
            self._release(key, self._shares[key], at)

    def list_placements(self, key: int) -> Iterable[int]:
        """Tell where a campaign may be shown."""
        share = self._shares.get(key)
        return () if share is None else share.placements

    def reserve(self, key: int, cost: int, second: int) -> int | None:
        """Take one offer out of a campaign's lease: its number, or None where nothing is left."""
        share = self._shares.get(key)
        if share is None:
            return None
        share.offers += 1
        left = share.left - cost
        if left < 0 or second >= share.ends_second:
            share.is_needed = True
            self._update_reason(key, share, second)
            self._mark_urgent(key, share)
            return None
        # On the path of every offer: what the share itself could do costs a call there.
        share.left = left
        share.unreported[second] = share.unreported.get(second, 0) + cost
        share.offered_second = second
        if left <= share.low:
            if left < share.terms.cost:
                self._update_reason(key, share, second)
            self._mark_urgent(key, share)
        elif not share.is_touched:
            share.is_touched = True
            self._touched.append(key)
        return share.lease

    # ------------------------------------------------------------ what is said

    @property
    def next_at(self) -> float | None:
        """When something may fall due; what is urgent is told at once to whoever asked for that."""
        return self._agenda.next_at

    @property
    def next_end(self) -> int | None:
        """The second in which the next lease may end."""
        return self._agenda.next_end

    def collect_reports(self, *, second: int, at: float, most: int, is_wanted: IsWanted) -> list[Said]:
        """Tell what is to be said now: reports that nobody has answered, and new ones."""
        self._catch_up(second, at)
        said: list[Said] = []
        for planned_at, key in self._agenda.pop_repeats(at):
            share = self._shares.get(key)
            if share is not None and share.pending is not None and share.due_at == planned_at:
                said.append((share.terms, self._repeat_report(key, share, share.pending, at)))
            if len(said) == most:
                return said
        # Who closes says everything: it may not be there any more when somebody answers.
        while len(said) < most and (self.is_closing or self.under_way < UNDER_WAY_MAX):
            planned_at, key = next(self._agenda.pop_due(at), (0.0, None))
            if key is None:
                break
            share = self._shares.get(key)
            if share is not None and share.pending is None and share.due_at == planned_at:
                usage = self._build_report(key, share, second, at, is_wanted)
                said += () if usage is None else ((share.terms, usage),)
        return said

    def on_demand(self, key: int, *, at: float) -> None:
        """Hear that somebody asks for a campaign that waits for that."""
        share = self._shares.get(key)
        if share is not None and share.is_gated:
            self._schedule(key, share, max(at, share.sent_at + share.wait_seconds))

    # ------------------------------------------------------------ what is heard

    def on_answer(self, answer: LeaseAnswer, *, second: int, at: float) -> None:
        """Take an answer; only one to what was last said counts."""
        found = self._register.find(answer.campaign_id)
        pending = None if found is None else found[1].pending
        if found is None or pending is None or _report_key(answer) != _report_key(pending):
            self.late += 1
            return
        key, share = found
        self.under_way -= 1
        share.due_at = None
        is_void = answer.lease == 0 or pending.lease not in {0, answer.lease}
        if is_void and pending.want > 0:
            self.voided += 1
            self.is_void = True
            share.reset()
            self._update_reason(key, share, second)
            return
        if is_void:
            share.reset()  # It was returned before, and we have not heard the answer.
        else:
            self._apply_grant(key, share, answer)
        self._plan_next_report(key, share, pending, second, at)

    def on_recall(self, recall: Recall, *, second: int, at: float) -> None:
        """Report at once, and return what is not needed here."""
        found = self._register.find(recall.campaign_id)
        if found is None or recall.session != self.session:
            return
        key, share = found
        if share.needs_report:
            share.recall(second)
            self._schedule(key, share, at)

    def on_campaign_restored(self, campaign_id: CampaignId, *, at: float) -> None:
        """Hear that a campaign has something to give again."""
        found = self._register.find(campaign_id)
        if found is not None:
            self._retry_soon(*found, at)

    def on_advertiser_restored(self, advertiser_id: AdvertiserId, *, at: float) -> None:
        """Hear that an advertiser has something to give again."""
        for key, share in self._register.list_of_advertiser(advertiser_id):
            self._retry_soon(key, share, at)

    def on_spend_update(self, campaign_id: CampaignId, *, at: float) -> None:
        """Hear how a campaign stands, which it says often: only where it is asked for we try whether that helps."""
        found = self._register.find(campaign_id)
        if found is not None and found[1].was_turned_away:
            key, share = found
            share.wait_seconds = WAIT_SECONDS_MIN
            self._schedule(key, share, max(at, share.sent_at + UPDATE_SECONDS))

    def on_campaign_exhausted(self, campaign_id: CampaignId, *, at: float) -> None:
        """Hear that nothing is left of a campaign's budget: to ask for it is of no use before there are news."""
        found = self._register.find(campaign_id)
        if found is not None and found[1].is_gated and found[1].pending is None:
            key, share = found
            share.wait_seconds = WAIT_SECONDS_MAX
            self._agenda.reschedule(key, share, at + WAIT_SECONDS_MAX)

    # ------------------------------------------------------------ the session

    def start_session(self, session: int, *, at: float) -> None:
        """Begin another session: nothing of the one before may be given, and all ask anew."""
        self.session = session
        self.is_void = False
        self.under_way = 0
        self._agenda.clear()
        self._urgent.clear()
        self._touched.clear()
        for key in [key for key, share in self._shares.items() if share.is_leaving]:
            self._register.drop(key)
        for key, share in self._shares.items():
            share.reset()
            self._set_reason(key, share, BUDGET_PENDING)
            self._agenda.schedule(key, share, at if share.rate else self._agenda.take_background_slot(at))

    def close(self, *, at: float) -> None:
        """Give nothing any more, and return everything."""
        self.is_closing = True
        for key, share in self._shares.items():
            self._set_reason(key, share, BUDGET_PENDING)
            if share.needs_report:
                share.is_ending = True
                self._schedule(key, share, at)
            else:
                share.due_at = None

    @property
    def is_settled(self) -> bool:
        """Whether everything is returned, and that is known."""
        return self.is_closing and not any(share.needs_report for share in self._shares.values())

    # ------------------------------------------------------------ steps

    def _release(self, key: int, share: CampaignLease, at: float) -> None:
        self._set_reason(key, share, None)  # Who is still there needs no lease any more.
        if share.needs_report:
            share.is_leaving = share.is_ending = True
            self._schedule(key, share, at)
        else:
            self._register.drop(key)

    def _catch_up(self, second: int, at: float) -> None:
        """Put on the agenda what happened since the last look."""
        for keys, seconds in ((self._touched, REPORT_SECONDS), (self._urgent, 0.0)):
            for key in keys:
                share = self._shares.get(key)
                if share is not None:
                    share.is_urgent = False
                    share.restart_rate(at)
                    self._schedule(key, share, at + seconds)
            keys.clear()
        for ends_second, key in self._agenda.pop_ended(second, most=ENDS_A_LOOK_MAX):
            share = self._shares.get(key)
            if share is not None and share.ends_second == ends_second:
                self._update_reason(key, share, second)
                share.is_gated = False
                share.wait_seconds = WAIT_SECONDS_MIN
                self._schedule(key, share, at if share.rate else self._agenda.take_background_slot(at))

    def _build_report(
        self, key: int, share: CampaignLease, second: int, at: float, is_wanted: IsWanted
    ) -> Usage | None:
        """Say what is to be said of one campaign; nothing, where it waits until somebody asks for it."""
        share.due_at = None
        if share.is_gated and not share.needs_report:
            if not is_wanted(key):
                return None
            share.is_needed = True
        usage = share.build_report(self.session, second=second, at=at)
        self._update_reason(key, share, second)
        self.under_way += 1
        self.asked += 1
        share.sent_at = at
        share.repeat_seconds = REPEAT_SECONDS
        self._agenda.schedule_repeat(key, share, at + REPEAT_SECONDS)
        return usage

    def _repeat_report(self, key: int, share: CampaignLease, pending: Usage, at: float) -> Usage:
        share.repeat_seconds = min(2 * share.repeat_seconds, REPEAT_SECONDS_MAX)
        self.repeated += 1
        share.sent_at = at
        self._agenda.schedule_repeat(key, share, at + share.repeat_seconds)
        return pending

    def _apply_grant(self, key: int, share: CampaignLease, answer: LeaseAnswer) -> None:
        left, ends_second = share.left, share.ends_second
        share.apply_answer(answer)
        self.granted += share.left > left
        if answer.verdict is not Verdict.GRANTED:
            self.refused[answer.verdict] += 1
        if share.ends_second != ends_second:
            self._agenda.schedule_end(key, share.ends_second)

    def _plan_next_report(
        self, key: int, share: CampaignLease, pending: Usage, second: int, at: float
    ) -> None:
        """Tell who may be shown after an answer, and when there is something to be said again."""
        self._update_reason(key, share, second)
        if share.is_leaving or self.is_closing:
            if share.needs_report:
                share.is_ending = True
                self._schedule(key, share, at)
            elif share.is_leaving:
                self._register.drop(key)
        elif share.is_ending or share.is_recalled or (second >= share.ends_second and pending.lease):
            self._schedule(key, share, at)
        elif share.can_offer(second):
            share.mark_satisfied()
            if share.unreported:
                self._schedule(key, share, at + REPORT_SECONDS)
        else:
            # Also where the day of a new one is over: then it is here and not there, as clocks differ.
            self._schedule(key, share, at + share.back_off(pending))

    def _retry_soon(self, key: int, share: CampaignLease, at: float) -> None:
        if share.reason is not None and not self.is_closing:
            share.wait_seconds = WAIT_SECONDS_MIN
            share.is_gated = False
            self._schedule(key, share, max(at, share.sent_at + SOON_SECONDS))

    def _mark_urgent(self, key: int, share: CampaignLease) -> None:
        """Ask at once, unless an answer is awaited, or it was just no."""
        if share.is_urgent or share.is_gated or share.pending is not None:
            return
        share.is_urgent = True
        self._urgent.append(key)
        if len(self._urgent) == 1:
            self._on_urgent()

    def _schedule(self, key: int, share: CampaignLease, at: float) -> None:
        """Plan to say something; who waits for an answer says it after that."""
        if share.pending is None:
            self._agenda.schedule(key, share, at)

    def _update_reason(self, key: int, share: CampaignLease, second: int) -> None:
        """Tell whether a campaign may be shown, where that has changed."""
        if share.is_leaving or (share.can_offer(second) and not self.is_closing):
            self._set_reason(key, share, None)
        elif share.verdict is None or second >= share.ends_second:
            self._set_reason(key, share, BUDGET_PENDING)
        else:
            self._set_reason(key, share, REASON_BY_VERDICT.get(share.verdict, BUDGET_PENDING))

    def _set_reason(self, key: int, share: CampaignLease, reason: str | None) -> None:
        if reason != share.reason:
            self._out += (reason is not None) - (share.reason is not None)
            share.reason = reason
            self.news[key] = reason


def _report_key(message: LeaseAnswer | Usage) -> tuple[int, int]:
    return message.session, message.report
