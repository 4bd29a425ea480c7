"""Simulated traffic on the sample, for as long as the sample is loaded."""

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

import structlog

from adloom.core.clock import Clock
from adloom.core.random import Chance
from adloom.sample.manifest import Manifest, State
from adloom.sample.visitors.browser import Asked, BusyError
from adloom.sample.visitors.visitors import SampleVisitor, compute_visits_per_second, draw_seconds_to_next
from adloom.sample.visitors.visits import (
    BATCH_EVENTS,
    Event,
    Reaction,
    SeenOffer,
    VisitedPage,
    draw_past_events,
    list_ctrs,
    pick_visit,
    react_to,
)

POLL_SECONDS: Final = 1.0  # How often we look whether the sample is still loaded.
WAITING_MAX: Final = 1_000  # Reactions; beyond this the oldest are dropped.
PAST_PAUSE_SECONDS: Final = 0.4  # Pause between batches of past events: they are not urgent.
PAST_UNTIL: Final = timedelta(minutes=30)  # After the load; reported later, it would be another day.
AWAY_SECONDS: Final = 1.0
AWAY_SECONDS_MAX: Final = 30.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class DeliveryClient(Protocol):
    """What a visitor's browser can do."""

    def request_page(self, visitor: SampleVisitor, sight: VisitedPage) -> dict[str, Asked]: ...

    def hold_auction(self, visitor: SampleVisitor, slug: str) -> SeenOffer | None: ...

    def report(self, visitor: SampleVisitor | None, events: list[Event]) -> None: ...

    def fetch(self, visitor: SampleVisitor, address: str) -> None: ...


Act = Callable[[], None]


class Traffic:
    """All simulated visitors, one action after another; what delivery cannot take now is skipped."""

    def __init__(  # noqa: PLR0913, PLR0917 - all that comes from outside
        self,
        delivery: DeliveryClient,
        read_manifest: Callable[[], Manifest | None],
        clock: Clock,
        chance: Chance,
        sleep: Callable[[float], None],
        seed_chance: Callable[[str], Chance],
    ) -> None:
        self._delivery = delivery
        self._read_manifest = read_manifest
        self._clock = clock
        self._chance = chance
        self._sleep = sleep
        self._seed_chance = seed_chance
        self._due: list[tuple[datetime, int, Act]] = []
        self._order = itertools.count()
        self._away_seconds = AWAY_SECONDS

    def run(self) -> None:
        """Run until the sample is removed."""
        manifest = self._read_manifest()
        if manifest is None or manifest.state is not State.THERE:
            return
        now = self._clock.now()
        polled_at = next_visit_at = now
        past = self._draw_past(manifest) if now - manifest.loaded_at < PAST_UNTIL else iter(())
        self._report_past(past)
        while True:
            now = self._clock.now()
            if now - polled_at >= timedelta(seconds=POLL_SECONDS):
                polled_at, manifest = now, self._read_manifest()
                if manifest is None or manifest.state is not State.THERE:
                    return
            if now >= next_visit_at:
                self._try(lambda it=manifest: self._visit(it))
                rate = compute_visits_per_second(now, loaded_at=manifest.loaded_at)
                next_visit_at = now + timedelta(seconds=draw_seconds_to_next(rate, self._chance))
            while self._due and self._due[0][0] <= now:
                self._try(heapq.heappop(self._due)[2])
            soonest = min([next_visit_at, *(at for at, _, _ in self._due[:1])])
            wait = (soonest - self._clock.now()).total_seconds()
            if wait > 0:
                self._sleep(min(POLL_SECONDS, wait))

    def _try(self, act: Act) -> None:
        try:
            act()
            self._away_seconds = AWAY_SECONDS
        except BusyError as error:
            log.debug("sample_traffic_waits", reason=str(error), seconds=self._away_seconds)
            self._sleep(self._away_seconds)
            self._away_seconds = min(AWAY_SECONDS_MAX, self._away_seconds * 2)

    def _visit(self, manifest: Manifest) -> None:
        visit = pick_visit(self._chance)
        visitor, sight = visit.visitor, visit.sight
        ctrs = list_ctrs(manifest, sight.section)
        if sight.slots:
            answers = self._delivery.request_page(visitor, sight)
            there = [answer for slug in sight.slots if (answer := answers.get(slug)) and answer.placement]
            reactions = list(react_to([it.banners for it in there], ctrs, self._chance))
            self._plan_page(visitor, sight, reactions, _list_names(there))
        if sight.auctioned is not None:
            offer = self._delivery.hold_auction(visitor, sight.auctioned)
            if offer is not None:
                for reaction in react_to([[offer]], ctrs, self._chance):
                    self._act_in(
                        reaction.seen_after_seconds,
                        lambda it=offer.impression_url: self._delivery.fetch(visitor, it),
                    )
                    self._plan_click(visitor, reaction)

    def _plan_page(
        self,
        visitor: SampleVisitor,
        sight: VisitedPage,
        reactions: Sequence[Reaction],
        names: dict[str, Event],
    ) -> None:
        """Report everything that was seen of a page in one request, as the tag does, and clicks one by one."""
        if not reactions:
            return
        events: list[Event] = [
            {
                "type": "impression",
                **names[reaction.offer.tracking_token],
                "bannerId": reaction.offer.id,
                "campaignId": reaction.offer.campaign_id,
                "trackingToken": reaction.offer.tracking_token,
                "userId": str(visitor.id),
                "pageUrl": sight.address or "",
            }
            for reaction in reactions
        ]
        last = max(reaction.seen_after_seconds for reaction in reactions)
        self._act_in(last, lambda: self._delivery.report(visitor, events))
        for reaction in reactions:
            self._plan_click(visitor, reaction)

    def _plan_click(self, visitor: SampleVisitor, reaction: Reaction) -> None:
        if reaction.clicked_after_seconds is not None:
            address = reaction.offer.click_url
            self._act_in(reaction.clicked_after_seconds, lambda: self._delivery.fetch(visitor, address))

    def _act_in(self, seconds: float, act: Act) -> None:
        if len(self._due) < WAITING_MAX:
            due_at = self._clock.now() + timedelta(seconds=seconds)
            heapq.heappush(self._due, (due_at, next(self._order), act))

    def _draw_past(self, manifest: Manifest) -> Iterator[list[Event]]:
        # The same past after every restart: another would add its clicks to those that were reported before.
        events = draw_past_events(
            manifest, self._seed_chance(f"the past of {manifest.loaded_at.isoformat()}")
        )
        while batch := list(itertools.islice(events, BATCH_EVENTS)):
            yield batch

    def _report_past(self, batches: Iterator[list[Event]]) -> None:
        """Report the day before the load, in small batches beside live traffic."""
        batch = next(batches, None)
        if batch is None:
            return

        def report() -> None:
            self._report_past(batches)
            self._delivery.report(None, batch)

        self._act_in(PAST_PAUSE_SECONDS, report)


def _list_names(answers: Sequence[Asked]) -> dict[str, Event]:
    """Map each offer to its placement, as the tag does, by the token."""
    return {
        offer.tracking_token: {
            "correlationId": f"offer:{answer.request_id}:{number}",
            "placementId": answer.placement.id,
        }
        for answer in answers
        if answer.placement is not None
        for number, offer in enumerate(answer.banners)
    }
