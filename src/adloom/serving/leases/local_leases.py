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
from adloom.serving.index.offer_price import Terms
from adloom.serving.leases.campaign_lease import (
    PENDING,
    REASONS,
    WAIT_SECONDS_MAX,
    WAIT_SECONDS_MIN,
    Share,
)
from adloom.serving.leases.registry import LeaseRegister, Placed
from adloom.serving.leases.timers import Agenda

REPEAT_SECONDS: Final = 0.5  # An answer takes milliseconds: after this it is lost.
REPEAT_SECONDS_MAX: Final = 2.0
REPORT_SECONDS: Final = 5.0  # What was given is reported at least so often.
UPDATE_SECONDS: Final = 0.25  # Spend is told twice a second; to ask much more often is of no use.
SOON_SECONDS: Final = 0.05
UNDER_WAY_MAX: Final = 2_000  # Beyond this nobody else asks until somebody is answered.
ENDS_A_LOOK_MAX: Final = 2_000

IsWanted = Callable[[int], bool]  # Whether somebody asks for a campaign.
Said = tuple[Terms, Usage]


def _nobody() -> None:
    return None


class LeaseBook:
    """The leases of all campaigns that need one."""

    def __init__(self, session: int = 0, *, on_urgent: Callable[[], None] = _nobody) -> None:
        self.session = session
        self.is_void = False  # The session is over, as a brain says: begin another.
        self.is_closing = False
        self._on_urgent = on_urgent
        self._register = LeaseRegister()
        self._shares = self._register.shares
        self._agenda = Agenda()
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

    def changes(self) -> dict[int, str | None]:
        """Take the news since this was last asked."""
        news, self.news = self.news, {}
        return news

    def excluded(self) -> dict[str, frozenset[int]]:
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

    def learn(self, placed: Placed, *, at: float) -> None:
        """Take what the index says; who is new asks for a lease, who is gone returns what it has."""
        learned = self._register.learn(placed)
        for key in learned.new:
            share = self._shares[key]
            self._say(key, share, PENDING)
            self._agenda.put(key, share, self._agenda.in_turn(at))
        for key in learned.changed - learned.new - learned.gone:
            share = self._shares[key]
            share.is_leaving = share.is_ending = False
            if share.left < share.terms.cost or share.reason is not None:
                # What is left pays for no offer any more, or was about to be returned: ask anew.
                self._say(key, share, PENDING)
                share.is_gated = False
                self._put(key, share, at)
        for key in learned.gone:
            self._leave(key, self._shares[key], at)

    def placements_of(self, key: int) -> Iterable[int]:
        """Tell where a campaign may be shown."""
        share = self._shares.get(key)
        return () if share is None else share.placements

    def take(self, key: int, cost: int, second: int) -> int | None:
        """Take one offer out of a campaign's lease: its number, or None where nothing is left."""
        share = self._shares.get(key)
        if share is None:
            return None
        share.offers += 1
        left = share.left - cost
        if left < 0 or second >= share.ends_second:
            share.is_needed = True
            self._judge(key, share, second)
            self._hurry(key, share)
            return None
        # On the path of every offer: what the share itself could do costs a call there.
        share.left = left
        share.unreported[second] = share.unreported.get(second, 0) + cost
        share.offered_second = second
        if left <= share.low:
            if left < share.terms.cost:
                self._judge(key, share, second)
            self._hurry(key, share)
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

    def due(self, *, second: int, at: float, most: int, is_wanted: IsWanted) -> list[Said]:
        """Tell what is to be said now: reports that nobody has answered, and new ones."""
        self._catch_up(second, at)
        said: list[Said] = []
        for planned_at, key in self._agenda.repeats(at):
            share = self._shares.get(key)
            if share is not None and share.pending is not None and share.due_at == planned_at:
                said.append((share.terms, self._again(key, share, share.pending, at)))
            if len(said) == most:
                return said
        # Who closes says everything: it may not be there any more when somebody answers.
        while len(said) < most and (self.is_closing or self.under_way < UNDER_WAY_MAX):
            planned_at, key = next(self._agenda.due(at), (0.0, None))
            if key is None:
                break
            share = self._shares.get(key)
            if share is not None and share.pending is None and share.due_at == planned_at:
                usage = self._said(key, share, second, at, is_wanted)
                said += () if usage is None else ((share.terms, usage),)
        return said

    def wanted(self, key: int, *, at: float) -> None:
        """Hear that somebody asks for a campaign that waits for that."""
        share = self._shares.get(key)
        if share is not None and share.is_gated:
            self._put(key, share, max(at, share.sent_at + share.wait_seconds))

    # ------------------------------------------------------------ what is heard

    def answered(self, answer: LeaseAnswer, *, second: int, at: float) -> None:
        """Take an answer; only one to what was last said counts."""
        found = self._register.find(answer.campaign_id)
        pending = None if found is None else found[1].pending
        if found is None or pending is None or _names(answer) != _names(pending):
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
            self._judge(key, share, second)
            return
        if is_void:
            share.reset()  # It was returned before, and we have not heard the answer.
        else:
            self._settle(key, share, answer)
        self._plan(key, share, pending, second, at)

    def recalled(self, recall: Recall, *, second: int, at: float) -> None:
        """Report at once, and return what is not needed here."""
        found = self._register.find(recall.campaign_id)
        if found is None or recall.session != self.session:
            return
        key, share = found
        if share.has_something_to_say:
            share.recall(second)
            self._put(key, share, at)

    def restored(self, campaign_id: CampaignId, *, at: float) -> None:
        """Hear that a campaign has something to give again."""
        found = self._register.find(campaign_id)
        if found is not None:
            self._encourage(*found, at)

    def advertiser_restored(self, advertiser_id: AdvertiserId, *, at: float) -> None:
        """Hear that an advertiser has something to give again."""
        for key, share in self._register.of_advertiser(advertiser_id):
            self._encourage(key, share, at)

    def updated(self, campaign_id: CampaignId, *, at: float) -> None:
        """Hear how a campaign stands, which it says often: only where it is asked for we try whether that helps."""
        found = self._register.find(campaign_id)
        if found is not None and found[1].was_turned_away:
            key, share = found
            share.wait_seconds = WAIT_SECONDS_MIN
            self._put(key, share, max(at, share.sent_at + UPDATE_SECONDS))

    def exhausted(self, campaign_id: CampaignId, *, at: float) -> None:
        """Hear that nothing is left of a campaign's budget: to ask for it is of no use before there are news."""
        found = self._register.find(campaign_id)
        if found is not None and found[1].is_gated and found[1].pending is None:
            key, share = found
            share.wait_seconds = WAIT_SECONDS_MAX
            self._agenda.put_off(key, share, at + WAIT_SECONDS_MAX)

    # ------------------------------------------------------------ the session

    def begin(self, session: int, *, at: float) -> None:
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
            self._say(key, share, PENDING)
            self._agenda.put(key, share, at if share.rate else self._agenda.in_turn(at))

    def close(self, *, at: float) -> None:
        """Give nothing any more, and return everything."""
        self.is_closing = True
        for key, share in self._shares.items():
            self._say(key, share, PENDING)
            if share.has_something_to_say:
                share.is_ending = True
                self._put(key, share, at)
            else:
                share.due_at = None

    @property
    def is_settled(self) -> bool:
        """Whether everything is returned, and that is known."""
        return self.is_closing and not any(share.has_something_to_say for share in self._shares.values())

    # ------------------------------------------------------------ steps

    def _leave(self, key: int, share: Share, at: float) -> None:
        self._say(key, share, None)  # Who is still there needs no lease any more.
        if share.has_something_to_say:
            share.is_leaving = share.is_ending = True
            self._put(key, share, at)
        else:
            self._register.drop(key)

    def _catch_up(self, second: int, at: float) -> None:
        """Put on the agenda what happened since the last look."""
        for keys, seconds in ((self._touched, REPORT_SECONDS), (self._urgent, 0.0)):
            for key in keys:
                share = self._shares.get(key)
                if share is not None:
                    share.is_urgent = False
                    share.begin_rating(at)
                    self._put(key, share, at + seconds)
            keys.clear()
        for ends_second, key in self._agenda.ended(second, most=ENDS_A_LOOK_MAX):
            share = self._shares.get(key)
            if share is not None and share.ends_second == ends_second:
                self._judge(key, share, second)
                share.is_gated = False
                share.wait_seconds = WAIT_SECONDS_MIN
                self._put(key, share, at if share.rate else self._agenda.in_turn(at))

    def _said(self, key: int, share: Share, second: int, at: float, is_wanted: IsWanted) -> Usage | None:
        """Say what is to be said of one campaign; nothing, where it waits until somebody asks for it."""
        share.due_at = None
        if share.is_gated and not share.has_something_to_say:
            if not is_wanted(key):
                return None
            share.is_needed = True
        usage = share.next_report(self.session, second=second, at=at)
        self._judge(key, share, second)
        self.under_way += 1
        self.asked += 1
        share.sent_at = at
        share.repeat_seconds = REPEAT_SECONDS
        self._agenda.put_repeat(key, share, at + REPEAT_SECONDS)
        return usage

    def _again(self, key: int, share: Share, pending: Usage, at: float) -> Usage:
        share.repeat_seconds = min(2 * share.repeat_seconds, REPEAT_SECONDS_MAX)
        self.repeated += 1
        share.sent_at = at
        self._agenda.put_repeat(key, share, at + share.repeat_seconds)
        return pending

    def _settle(self, key: int, share: Share, answer: LeaseAnswer) -> None:
        left, ends_second = share.left, share.ends_second
        share.answered(answer)
        self.granted += share.left > left
        if answer.verdict is not Verdict.GRANTED:
            self.refused[answer.verdict] += 1
        if share.ends_second != ends_second:
            self._agenda.put_end(key, share.ends_second)

    def _plan(self, key: int, share: Share, pending: Usage, second: int, at: float) -> None:
        """Tell who may be shown after an answer, and when there is something to be said again."""
        self._judge(key, share, second)
        if share.is_leaving or self.is_closing:
            if share.has_something_to_say:
                share.is_ending = True
                self._put(key, share, at)
            elif share.is_leaving:
                self._register.drop(key)
        elif share.is_ending or share.is_recalled or (second >= share.ends_second and pending.lease):
            self._put(key, share, at)
        elif share.can_give(second):
            share.has_what_it_needs()
            if share.unreported:
                self._put(key, share, at + REPORT_SECONDS)
        else:
            # Also where the day of a new one is over: then it is here and not there, as clocks differ.
            self._put(key, share, at + share.turned_away(pending))

    def _encourage(self, key: int, share: Share, at: float) -> None:
        if share.reason is not None and not self.is_closing:
            share.wait_seconds = WAIT_SECONDS_MIN
            share.is_gated = False
            self._put(key, share, max(at, share.sent_at + SOON_SECONDS))

    def _hurry(self, key: int, share: Share) -> None:
        """Ask at once, unless an answer is awaited, or it was just no."""
        if share.is_urgent or share.is_gated or share.pending is not None:
            return
        share.is_urgent = True
        self._urgent.append(key)
        if len(self._urgent) == 1:
            self._on_urgent()

    def _put(self, key: int, share: Share, at: float) -> None:
        """Plan to say something; who waits for an answer says it after that."""
        if share.pending is None:
            self._agenda.put(key, share, at)

    def _judge(self, key: int, share: Share, second: int) -> None:
        """Tell whether a campaign may be shown, where that has changed."""
        if share.is_leaving or (share.can_give(second) and not self.is_closing):
            self._say(key, share, None)
        elif share.verdict is None or second >= share.ends_second:
            self._say(key, share, PENDING)
        else:
            self._say(key, share, REASONS.get(share.verdict, PENDING))

    def _say(self, key: int, share: Share, reason: str | None) -> None:
        if reason != share.reason:
            self._out += (reason is not None) - (share.reason is not None)
            share.reason = reason
            self.news[key] = reason


def _names(message: LeaseAnswer | Usage) -> tuple[int, int]:
    return message.session, message.report
