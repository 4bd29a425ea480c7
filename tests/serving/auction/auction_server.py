"""The serve route of auctions in one process, with fakes of what is outside of it."""

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from adloom.auction.score import HEURISTIC, Heuristic
from adloom.core.clock import ManualClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import SystemIds
from adloom.events.frequency.counts import BannerFrequency, FrequencyQuery, MinimumCounts
from adloom.events.ingest.token import OfferToken, TokenKeys
from adloom.events.log.event import LogEvent, decode_event
from adloom.runtime.http.fast.fast_routes import DeferredAnswer, FastAnswer, FastRequest
from adloom.serving.auction.api import AuctionRoutes
from adloom.serving.auction.auctioneer import Auctioneer
from adloom.serving.auction.encode import AdEncoder
from adloom.serving.auction.market import Markets
from adloom.serving.auction.recorder import AuctionRecorder
from adloom.serving.eligibility.frequency_lookup import FrequencyLookup
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.rows import AssignmentRow, PlacementRow
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.context import ContextParser
from tests.serving.auction.marketplace import NOON, an_index
from tests.support.leases import grant_leases
from tests.support.rows import an_id

KEYS = TokenKeys("a secret of the tests, long enough to be one")
CONTEXTS = ContextParser()
USER = an_id(77)
SECOND = int(NOON.timestamp())


class FakeCounts:
    """Impression counts of users; it can be unavailable."""

    def __init__(self) -> None:
        self.shown: dict[UUID, list[BannerFrequency]] = {}
        self.asked: list[list[UUID]] = []
        self.banners: list[tuple[str, ...]] = []  # The banners that the queries asked about.
        self.least: list[MinimumCounts] = []
        self.is_away = False

    async def read(
        self, asked: Sequence[FrequencyQuery], least: MinimumCounts, now: datetime, /
    ) -> dict[int, list[BannerFrequency]]:
        del now
        user_ids = [UUID(user) for user, *_ in asked]
        self.asked.append(user_ids)
        self.banners += [one[1:] for one in asked]
        self.least.append(least)
        await asyncio.sleep(0)
        if self.is_away:
            raise UnavailableError("Valkey is away.")
        return {
            place: shown
            for place, (user, *banners) in enumerate(asked)
            if (shown := self.shown.get(UUID(user)))
            and (
                not banners or any(one.banner in banners and one.times >= least[one.window] for one in shown)
            )
        }


class AuctionServer:
    """The serve route over a small market."""

    def __init__(self, *rows: AssignmentRow, slots: Sequence[PlacementRow] = (), **options: Any) -> None:
        self.index = an_index(rows, *slots)
        self.clock = ManualClock(NOON)
        self.states = PlacementStates()
        self.leases = LocalLeases(1, draw=options.get("draw", lambda: 1.0))
        markets = Markets(self.states)
        self.counts = FakeCounts()
        self.frequency = FrequencyLookup(
            self.counts,
            self.clock,
            **{name: value for name, value in options.items() if name in {"when_away", "without_user"}},
        )
        self.published: list[bytes] = []
        self.logged: list[LogEvent] = []  # What goes to the event log together with recorded auctions.
        self.recorder = AuctionRecorder(
            self.published.append,
            self._record,
            Random(7),  # noqa: S311 - not a secret
            sample_rate=options.get("sample_rate", 1.0),
            bytes_per_second=options.get("bytes_per_second", 1 << 20),
        )
        reserver = Reserver(self.states, self.leases)
        self.routes = AuctionRoutes(
            lambda: self.index,
            self.clock,
            SystemIds(),
            markets=markets,
            policies={HEURISTIC: Heuristic()},
            auctioneer=Auctioneer(markets, CONTEXTS, reserver, self.states.find_reason),
            encoder=AdEncoder(KEYS.signer, public_url="https://ads.example"),
            frequency=self.frequency,
            recorder=self.recorder,
            count_traffic=options.get("count_traffic"),
            senders=options.get("senders"),
        )
        placements = self.index.by_key.values()
        self.leases.update({one.key: one.terms for one in placements}, at=0.0)
        self.states.mark_changed(self.leases.take_changes())

    def _record(self, entry: bytes, auction: bytes) -> None:
        self.logged.append(decode_event(entry))
        self.published.append(auction)

    def grant(self, amount: int, impressions: int = 0, throttle: float = 0.0) -> None:
        """Grant a lease of `amount` micros to every campaign that asks."""
        grant_leases(
            self.leases,
            amount,
            second=SECOND,
            impressions=impressions,
            throttle=throttle,
            ends_at=NOON + timedelta(hours=1),
        )
        self.states.mark_changed(self.leases.take_changes())

    def ask(self, **body: Any) -> FastAnswer | DeferredAnswer:
        headers = [(b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0")]
        fields = {"userId": str(USER), **body}
        return self.routes.serve(
            FastRequest(
                b"POST",
                b"/api/v1/ads/serve",
                headers=headers,
                body=json.dumps(fields).encode(),
                client="203.0.113.7",
            )
        )

    def served(self, **body: Any) -> dict[str, Any] | None:
        """Return the ad; None if there is none."""
        return read_ad(self.ask(**body))

    async def served_later(self, **body: Any) -> dict[str, Any] | None:
        later = self.ask(**body)
        assert isinstance(later, DeferredAnswer), "it does not wait for a look-up"
        return read_ad(await later)

    def entries(self) -> list[LogEvent]:
        """Return the published entries."""
        return [decode_event(entry) for entry in self.published]


def read_ad(answer: FastAnswer | DeferredAnswer) -> dict[str, Any] | None:
    assert isinstance(answer, FastAnswer), "it waits for a look-up"
    if answer.head.startswith(b"HTTP/1.1 204"):
        assert answer.body == b""
        return None
    assert answer.head.startswith(b"HTTP/1.1 200"), answer.body
    return json.loads(answer.body)


def token_of(ad: dict[str, Any] | None) -> OfferToken:
    assert ad is not None
    token = KEYS.verify(ad["trackingToken"].encode(), now=NOON)
    assert isinstance(token, OfferToken)
    return token
