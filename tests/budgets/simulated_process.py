"""A delivery process as budget actors know it: it takes leases, makes offers out of them, and reports its usage.

Only the pure part of the protocol; the real process uses `serving/leases/local_leases.py`.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from adloom.budgets.messages import LeaseAnswer, LeaseUsage, Recall
from adloom.core.ids import CampaignId
from adloom.core.money import Micros


class Offer(NamedTuple):
    """An offer to a visitor."""

    campaign_id: CampaignId
    lease: int
    second: int
    amount: Micros


class HeldLease:
    """One campaign's lease in one process."""

    def __init__(self, cost: Micros) -> None:
        self.cost = cost
        self.lease = 0
        self.left = 0
        self.ends_at: datetime | None = None
        self.report = 0
        self.pending: LeaseUsage | None = None
        self.unreported: dict[int, int] = {}
        self.is_needed = False
        self.is_recalled = False
        self.is_ending = False  # The pending report is the last of this lease.

    def make_offer(self, local: datetime) -> tuple[int, int] | None:
        """Make an offer: return its lease and second, or None."""
        if not self.lease or self.left < self.cost or self.ends_at is None or local >= self.ends_at:
            self.is_needed = True
            return None
        second = int(local.timestamp())
        self.left -= self.cost
        self.unreported[second] = self.unreported.get(second, 0) + self.cost
        return self.lease, second

    def usage(self, session: int, want: int, local: datetime) -> LeaseUsage:
        """Return the next report; the last one until it is answered."""
        if self.pending is None:
            has_ended = self.lease != 0 and self.ends_at is not None and local >= self.ends_at
            want = 0 if has_ended or self.is_recalled else want
            self.left = min(self.left, want)
            self.report += 1
            self.is_ending = has_ended
            self.pending = LeaseUsage(
                session=session,
                report=self.report,
                lease=self.lease,
                given=tuple(sorted(self.unreported.items())),
                want=Micros(want),
                cost=self.cost,
                is_needed=self.is_needed and want > 0,
            )
            self.unreported = {}
            self.is_needed = self.is_recalled = False
        return self.pending

    def on_answer(self, answer: LeaseAnswer) -> None:
        """Apply the answer to the last report."""
        self.pending = None
        if self.is_ending:
            self.lease = self.left = 0
            return
        self.lease, self.ends_at = answer.lease, answer.ends_at
        self.left = answer.granted - answer.given - sum(self.unreported.values())


class SimulatedProcess:
    """A delivery process; its clock may be wrong."""

    def __init__(self, session: int, costs: dict[CampaignId, Micros]) -> None:
        self.session = session
        self.leases = {campaign_id: HeldLease(cost) for campaign_id, cost in costs.items()}
        self.skew = timedelta()
        self.is_void = False  # Its session was ended: it must start another.

    def local(self, now: datetime) -> datetime:
        return now + self.skew

    def make_offer(self, campaign_id: CampaignId, now: datetime) -> Offer | None:
        """Make an offer out of the lease, if there is one."""
        held = self.leases[campaign_id]
        given = held.make_offer(self.local(now))
        return None if given is None else Offer(campaign_id, given[0], given[1], held.cost)

    def report(self, campaign_id: CampaignId, want_offers: int, now: datetime) -> LeaseUsage:
        """Return the report about a campaign."""
        held = self.leases[campaign_id]
        return held.usage(self.session, want_offers * held.cost, self.local(now))

    def receive(self, message: LeaseAnswer | Recall) -> None:
        """Apply a message of a campaign."""
        held = self.leases[message.campaign_id]
        if isinstance(message, Recall):
            held.is_recalled = True
        elif held.pending is not None and held.pending.report == message.report:
            if message.lease == 0:
                self.is_void = True
            else:
                held.on_answer(message)

    def unfinished(self) -> Iterable[CampaignId]:
        """Return the campaigns with something left to report or to return."""
        for campaign_id, held in self.leases.items():
            if held.pending is not None or held.left or held.unreported or held.is_recalled:
                yield campaign_id
