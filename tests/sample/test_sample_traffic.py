"""Simulated traffic: visitors request, report and click; it backs off from a busy delivery, and ends with the sample."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

from adloom.core.clock import ManualClock
from adloom.runtime.random import seed_chance
from adloom.sample.manifest import Manifest, State
from adloom.sample.visitors.browser import Asked, BusyError, ServedPlacement
from adloom.sample.visitors.traffic import AWAY_SECONDS_MAX, Traffic
from adloom.sample.visitors.visitors import BRISK, BRISK_VISITS_PER_SECOND, SampleVisitor
from adloom.sample.visitors.visits import Event, SeenOffer, VisitedPage
from tests.sample.builders import LOADED_AT, a_chance, a_manifest


class FakeDelivery:
    """Offers one banner on every placement, and records all requests."""

    def __init__(self, banner_id: str, *, is_busy: Callable[[], bool] = lambda: False) -> None:
        self._banner_id = banner_id
        self._is_busy = is_busy
        self.requests: Counter[str] = Counter()
        self.attempts = 0
        self.events: list[Event] = []
        self.past: list[Event] = []
        self.fetched: list[str] = []

    def request_page(self, visitor: SampleVisitor, sight: VisitedPage) -> dict[str, Asked]:
        del visitor
        self._answer()
        self.requests["page"] += 1
        number = self.requests["page"]
        return {
            slug: Asked(
                banners=[self._offer(f"{number}:{slug}")],
                placement=ServedPlacement(slug),
                request_id=f"{number}:{slug}",
            )
            for slug in sight.slots
        }

    def hold_auction(self, visitor: SampleVisitor, slug: str) -> SeenOffer | None:
        del visitor
        self._answer()
        self.requests["auction"] += 1
        return self._offer(f"{slug}:{self.requests['auction']}")

    def report(self, visitor: SampleVisitor | None, events: list[Event]) -> None:
        self._answer()
        (self.past if visitor is None else self.events).extend(events)

    def fetch(self, visitor: SampleVisitor, address: str) -> None:
        del visitor
        self._answer()
        self.fetched.append(address)

    def _answer(self) -> None:
        self.attempts += 1
        if self._is_busy():
            raise BusyError("busy")

    def _offer(self, name: str) -> SeenOffer:
        return SeenOffer(
            id=self._banner_id,
            campaign_id="campaign",
            tracking_token=name,
            impression_url=f"http://x/i/{name}",
            click_url=f"http://x/c/{name}",
        )


class VirtualTime:
    """Time that passes only while the traffic sleeps, and a sample that is removed after a while."""

    def __init__(self, *, seconds: float, loaded_at_start: bool = True, seed: int = 1) -> None:
        self.seed = seed
        self.clock = ManualClock(LOADED_AT if loaded_at_start else LOADED_AT + timedelta(days=1))
        self.ends_at = self.clock.now() + timedelta(seconds=seconds)
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(timedelta(seconds=seconds))

    def manifest(self) -> Manifest | None:
        is_over = self.clock.now() >= self.ends_at
        return a_manifest(state=State.REMOVING if is_over else State.THERE)

    def run(self, delivery: FakeDelivery) -> FakeDelivery:
        Traffic(delivery, self.manifest, self.clock, a_chance(self.seed), self.sleep, seed_chance).run()
        return delivery


TEA = a_manifest().get_ids("banners")["tea"]


def test_visitors_see_and_click_and_each_impression_is_reported_once() -> None:
    delivery = VirtualTime(seconds=600).run(FakeDelivery(TEA))

    names = [event["correlationId"] for event in delivery.events]
    assert len(names) == len(set(names)) > 100
    assert {event["type"] for event in delivery.events} == {"impression"}
    assert all(event["trackingToken"] in event["correlationId"] for event in delivery.events)
    assert any(address.startswith("http://x/c/") for address in delivery.fetched)
    assert any(address.startswith("http://x/i/") for address in delivery.fetched)


def test_the_first_minutes_have_many_visits_and_later_hours_few() -> None:
    brisk = VirtualTime(seconds=BRISK.total_seconds()).run(FakeDelivery(TEA))
    later = VirtualTime(seconds=3_600, loaded_at_start=False).run(FakeDelivery(TEA))

    expected = BRISK.total_seconds() * BRISK_VISITS_PER_SECOND
    assert 0.7 * expected < brisk.requests.total() < 1.3 * expected
    assert 100 < later.requests.total() < 1_500


def test_the_day_before_is_reported_only_after_the_load() -> None:
    first = VirtualTime(seconds=600).run(FakeDelivery(TEA))
    next_day = VirtualTime(seconds=600, loaded_at_start=False).run(FakeDelivery(TEA))

    assert len(first.past) > 5_000
    assert next_day.past == []


def test_a_restart_reports_the_same_past_again() -> None:
    first, again = (VirtualTime(seconds=120, seed=seed).run(FakeDelivery(TEA)) for seed in (1, 2))

    assert first.events != again.events
    assert first.past == again.past
    assert {event["type"] for event in first.past} == {"impression", "click"}


def test_the_traffic_ends_when_the_sample_is_removed() -> None:
    virtual_time = VirtualTime(seconds=30)

    virtual_time.run(FakeDelivery(TEA))

    assert virtual_time.clock.now() < virtual_time.ends_at + timedelta(seconds=2)


def test_without_a_sample_the_traffic_does_not_start() -> None:
    virtual_time = VirtualTime(seconds=-1)

    delivery = virtual_time.run(FakeDelivery(TEA))

    assert (delivery.attempts, virtual_time.slept) == (0, [])


def test_the_traffic_backs_off_from_a_busy_delivery() -> None:
    virtual_time = VirtualTime(seconds=600)

    delivery = virtual_time.run(FakeDelivery(TEA, is_busy=lambda: True))

    assert delivery.attempts < 40
    assert max(virtual_time.slept) == AWAY_SECONDS_MAX


def test_the_traffic_continues_when_delivery_is_back() -> None:
    virtual_time = VirtualTime(seconds=600)
    back_at = LOADED_AT + timedelta(seconds=20)

    delivery = virtual_time.run(FakeDelivery(TEA, is_busy=lambda: virtual_time.clock.now() < back_at))

    assert delivery.requests.total() > 50


def test_ads_outside_the_sample_are_not_reported() -> None:
    delivery = VirtualTime(seconds=300).run(FakeDelivery("another-banner"))

    assert delivery.requests.total() > 50
    assert (delivery.events, delivery.fetched) == ([], [])


def test_the_traffic_sleeps_most_of_the_time() -> None:
    virtual_time = VirtualTime(seconds=600, loaded_at_start=False)

    virtual_time.run(FakeDelivery(TEA))

    assert sum(virtual_time.slept) > 590
