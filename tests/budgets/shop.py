"""A delivery process as budget actors know it: it takes leases, gives offers out of them, and says what it gave.

The pure part of the protocol and nothing else: the real one is `serving/leases/local_leases.py`.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from adloom.budgets.messages import LeaseAnswer, LeaseUsage, Recall
from adloom.core.ids import CampaignId
from adloom.core.money import Micros


class Offer(NamedTuple):
    """What was given to a reader."""

    campaign_id: CampaignId
    lease: int
    second: int
    amount: Micros


class Book:
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

    def give(self, local: datetime) -> tuple[int, int] | None:
        """Give an offer: its lease and second, or nothing."""
        if not self.lease or self.left < self.cost or self.ends_at is None or local >= self.ends_at:
            self.is_needed = True
            return None
        second = int(local.timestamp())
        self.left -= self.cost
        self.unreported[second] = self.unreported.get(second, 0) + self.cost
        return self.lease, second

    def usage(self, session: int, want: int, local: datetime) -> LeaseUsage:
        """Say what there is to say: what was said last until that is answered."""
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

    def take(self, answer: LeaseAnswer) -> None:
        """Take the answer to what was said last."""
        self.pending = None
        if self.is_ending:
            self.lease = self.left = 0
            return
        self.lease, self.ends_at = answer.lease, answer.ends_at
        self.left = answer.granted - answer.given - sum(self.unreported.values())


class Shop:
    """A delivery process; its clock may be wrong."""

    def __init__(self, session: int, costs: dict[CampaignId, Micros]) -> None:
        self.session = session
        self.books = {campaign_id: Book(cost) for campaign_id, cost in costs.items()}
        self.skew = timedelta()
        self.is_void = False  # Its session was ended: it shall begin another.

    def local(self, now: datetime) -> datetime:
        return now + self.skew

    def give(self, campaign_id: CampaignId, now: datetime) -> Offer | None:
        """Make an offer out of the lease, if there is one."""
        book = self.books[campaign_id]
        given = book.give(self.local(now))
        return None if given is None else Offer(campaign_id, given[0], given[1], book.cost)

    def said(self, campaign_id: CampaignId, want_offers: int, now: datetime) -> LeaseUsage:
        """Say what is to be said about a campaign."""
        book = self.books[campaign_id]
        return book.usage(self.session, want_offers * book.cost, self.local(now))

    def hear(self, message: LeaseAnswer | Recall) -> None:
        """Take what a campaign says."""
        book = self.books[message.campaign_id]
        if isinstance(message, Recall):
            book.is_recalled = True
        elif book.pending is not None and book.pending.report == message.report:
            if message.lease == 0:
                self.is_void = True
            else:
                book.take(message)

    def unfinished(self) -> Iterable[CampaignId]:
        """Tell of which campaigns something is left to say or to return."""
        for campaign_id, book in self.books.items():
            if book.pending is not None or book.left or book.unreported or book.is_recalled:
                yield campaign_id
