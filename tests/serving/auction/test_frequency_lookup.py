"""Frequency caps are looked up where they matter, for many at once, and never hold up an answer for long."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from adloom.events.frequency.counts import USERS_MAX, BannerFrequency
from adloom.events.frequency.windows import Window
from adloom.events.log.event import Auctioned, RemovedCandidates
from adloom.runtime.http.fast.fast_routes import DeferredAnswer
from adloom.serving.auction.frequency_lookup import CappedAds, CappedBanners, SeenBanners
from adloom.serving.index.rows import AssignmentRow, FrequencyLimit
from tests.serving.auction.counter import USER, Counter, ad_in
from tests.serving.auction.marketplace import a_row
from tests.support.rows import an_id

pytestmark = pytest.mark.anyio

TWICE_A_DAY = (FrequencyLimit(Window.DAY, 2), FrequencyLimit(Window.LIFETIME, 5))
NOBODY = "00000000-0000-0000-0000-000000000000"


def capped(number: int, bid: str, **fields: Any) -> AssignmentRow:
    return a_row(number, bid, frequency=TWICE_A_DAY, **fields)


def name_of(number: int) -> str:
    return str(a_row(number, "1").banner_id)


def seen(number: int, times: int, window: Window = Window.DAY) -> BannerFrequency:
    return BannerFrequency(window, name_of(number), times)


async def test_without_a_cap_nothing_is_looked_up() -> None:
    counter = Counter(a_row(1, "2.00"), a_row(2, "1.00"), capped(3, "0.50"))

    assert counter.served() is not None
    assert counter.counts.asked == []


async def test_a_visitor_who_has_seen_an_ad_often_enough_gets_the_next() -> None:
    counter = Counter(capped(1, "3.00"), a_row(2, "2.00"), a_row(3, "1.00"))
    counter.counts.shown[USER] = [seen(1, 2)]

    ad = await counter.served_later()

    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (name_of(2), 1.01)
    [auction] = counter.entries()
    assert isinstance(auction, Auctioned)
    assert auction.removed == (RemovedCandidates("frequency_cap", 1),)


async def test_a_visitor_who_has_not_gets_it() -> None:
    counter = Counter(capped(1, "3.00"), a_row(2, "2.00"))
    counter.counts.shown[USER] = [seen(1, 1), seen(1, 4, Window.LIFETIME)]

    ad = await counter.served_later()

    assert ad is not None
    assert ad["adId"] == name_of(1)


async def test_every_cap_of_a_banner_holds() -> None:
    counter = Counter(capped(1, "3.00"), a_row(2, "2.00"))
    counter.counts.shown[USER] = [seen(1, 1), seen(1, 5, Window.LIFETIME)]

    ad = await counter.served_later()

    assert ad is not None
    assert ad["adId"] == name_of(2)
    assert counter.counts.least == [{Window.DAY: 2, Window.LIFETIME: 5}]


async def test_the_second_bid_does_not_count_where_it_was_seen_often_enough() -> None:
    counter = Counter(a_row(1, "3.00"), capped(2, "2.00"), a_row(3, "1.00"))
    counter.counts.shown[USER] = [seen(2, 2)]

    ad = await counter.served_later()

    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (name_of(1), 1.01)


async def test_concurrent_requests_share_a_look_up() -> None:
    counter = Counter(capped(1, "3.00"), a_row(2, "2.00"))
    users = [an_id(100 + number) for number in range(20)]
    counter.counts.shown = {user: [seen(1, 2)] for user in users[::2]}

    answers = [counter.ask(userId=str(user)) for user in users]
    ads = [ad_in(await answer) for answer in answers if isinstance(answer, DeferredAnswer)]

    assert [ad and ad["adId"] for ad in ads] == [name_of(2), name_of(1)] * 10
    assert counter.counts.asked == [users]


@pytest.mark.parametrize(("when_away", "expected"), [(CappedAds.WITHHOLD, 2), (CappedAds.OFFER, 1)])
async def test_when_it_is_not_known_the_operator_has_decided(when_away: CappedAds, expected: int) -> None:
    counter = Counter(capped(1, "3.00"), a_row(2, "2.00"), when_away=when_away)
    counter.counts.is_away = True

    first = await counter.served_later()
    second = counter.served()  # For a while there is no look-up.

    assert [one and one["adId"] for one in (first, second)] == [name_of(expected)] * 2
    assert len(counter.counts.asked) == 1
    look = counter.frequency
    assert (look.failures, look.withheld_unknown + look.offered_unknown) == (1, 2)


async def test_a_failed_look_up_is_not_repeated_for_requests_that_came_meanwhile() -> None:
    counter = Counter(capped(1, "3.00"), a_row(2, "2.00"))
    counter.counts.is_away = True
    first = counter.ask()
    await asyncio.sleep(0)  # Its look-up is under way.

    others = [counter.ask() for _ in range(2 * USERS_MAX + 1)]
    ads = [ad_in(await answer) for answer in (first, *others) if isinstance(answer, DeferredAnswer)]

    assert [ad and ad["adId"] for ad in ads] == [name_of(2)] * (2 * USERS_MAX + 2)
    assert counter.counts.asked == [[USER]]
    assert counter.frequency.withheld_unknown == len(ads)


@pytest.mark.parametrize(("without_user", "expected"), [(CappedAds.WITHHOLD, 2), (CappedAds.OFFER, 1)])
async def test_nothing_is_looked_up_for_an_unknown_user(without_user: CappedAds, expected: int) -> None:
    counter = Counter(capped(1, "3.00"), a_row(2, "2.00"), without_user=without_user)

    ad = counter.served(userId=NOBODY)

    assert ad is not None
    assert ad["adId"] == name_of(expected)
    assert "?" not in ad["impressionUrl"]
    assert counter.counts.asked == []


async def test_no_ad_is_left_when_all_were_seen_often_enough() -> None:
    counter = Counter(capped(1, "3.00"))
    counter.counts.shown[USER] = [seen(1, 2)]

    assert await counter.served_later() is None
    assert counter.routes.unfilled == {
        "nobody": 0,
        "frequency_cap": 1,
        "frequency_unknown": 0,
        "not_held": 0,
    }


async def test_the_next_best_is_looked_up_if_nothing_was_yet() -> None:
    limited = [a_row(1, "10.00", is_limited=True), a_row(2, "9.00", is_limited=True)]
    counter = Counter(*limited, capped(3, "8.00"), a_row(4, "1.00"))
    counter.counts.shown[USER] = [seen(3, 2)]
    counter.grant(100_000)
    counter.clock.advance(timedelta(hours=2))  # Both leases end, and it is not reported yet.

    ad = await counter.served_later()

    assert ad is not None
    assert ad["adId"] == name_of(4)


@pytest.mark.parametrize("sample_rate", [0.0, 1.0])
async def test_a_second_bid_is_not_lost_with_a_winner_that_cannot_be_reserved(sample_rate: float) -> None:
    rows = a_row(1, "10.00", is_limited=True), a_row(2, "9.50"), capped(3, "9.00")
    counter = Counter(*rows, sample_rate=sample_rate)
    counter.grant(100_000)
    counter.clock.advance(timedelta(hours=2))

    ad = await counter.served_later()

    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (name_of(2), 9.01)
    assert counter.counts.asked == [[USER]]
    [entry] = counter.entries()
    if isinstance(entry, Auctioned):
        assert (entry.bid_count, entry.removed) == (2, (RemovedCandidates("budget_pending", 1),))


@pytest.mark.parametrize(("when_away", "price"), [(CappedAds.WITHHOLD, 1.01), (CappedAds.OFFER, 8.01)])
async def test_a_looked_up_ad_is_next_best_and_the_setting_decides_on_others(
    when_away: CappedAds, price: float
) -> None:
    rows = capped(1, "10.00", is_limited=True), capped(2, "9.00"), capped(3, "8.00"), a_row(4, "1.00")
    counter = Counter(*rows, sample_rate=0.0, when_away=when_away)
    counter.grant(100_000)
    counter.clock.advance(timedelta(hours=2))

    ad = await counter.served_later()

    assert counter.counts.banners == [(name_of(1), name_of(2))]
    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (name_of(2), price)
    look = counter.frequency
    is_offered = when_away is CappedAds.OFFER
    assert (look.offered_unknown, look.withheld_unknown) == (is_offered, not is_offered)


async def test_a_third_bid_needs_no_decision() -> None:
    rows = capped(1, "10.00", is_limited=True), a_row(2, "9.00"), a_row(3, "8.00"), capped(4, "7.00")
    counter = Counter(*rows, sample_rate=0.0)
    counter.grant(100_000)
    counter.clock.advance(timedelta(hours=2))

    ad = await counter.served_later()

    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (name_of(2), 8.01)
    assert counter.frequency.withheld_unknown == 0


async def test_an_ad_that_was_not_looked_up_is_withheld() -> None:
    limited = [capped(1, "10.00", is_limited=True), capped(2, "9.00", is_limited=True)]
    counter = Counter(*limited, capped(3, "8.00"), a_row(4, "1.00"), sample_rate=0.0)
    counter.counts.shown[USER] = [seen(3, 2)]
    counter.grant(100_000)
    counter.clock.advance(timedelta(hours=2))

    ad = await counter.served_later()

    assert ad is not None
    assert ad["adId"] == name_of(4)


async def test_only_ads_that_may_win_or_be_second_are_looked_up() -> None:
    rows = capped(1, "3.00"), a_row(2, "2.00"), capped(3, "1.00")
    recorded, unrecorded = Counter(*rows), Counter(*rows, sample_rate=0.0)

    for counter in (recorded, unrecorded):
        assert await counter.served_later() is not None

    # For the record everybody matters.
    assert recorded.counts.banners == [()]
    assert unrecorded.counts.banners == [(name_of(1),)]


async def test_an_ad_that_leads_meanwhile_is_not_offered_without_a_look_up() -> None:
    rows = capped(1, "10.00"), capped(2, "9.00"), capped(3, "8.00"), a_row(4, "1.00")
    counter = Counter(*rows, sample_rate=0.0)
    counter.counts.shown[USER] = [seen(3, 2)]

    later = counter.ask()
    counter.states.mark_changed({1: "budget", 2: "budget"})
    assert isinstance(later, DeferredAnswer)
    ad = ad_in(await later)

    assert counter.counts.banners == [(name_of(1), name_of(2))]
    assert ad is not None
    assert ad["adId"] == name_of(4)


@pytest.mark.parametrize(("when_away", "price"), [(CappedAds.WITHHOLD, 1.01), (CappedAds.OFFER, 8.01)])
async def test_a_looked_up_ad_is_offered_whatever_else_comes_or_goes(
    when_away: CappedAds, price: float
) -> None:
    rows = a_row(1, "10.00"), capped(2, "9.00"), capped(3, "8.00"), a_row(4, "1.00")
    counter = Counter(*rows, sample_rate=0.0, when_away=when_away)

    later = counter.ask()
    counter.states.mark_changed({1: "budget"})
    assert isinstance(later, DeferredAnswer)
    ad = ad_in(await later)

    assert counter.counts.banners == [(name_of(2),)]
    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (name_of(2), price)
    look = counter.frequency
    is_offered = when_away is CappedAds.OFFER
    assert (look.offered_unknown, look.withheld_unknown) == (is_offered, not is_offered)


async def test_what_is_not_known_is_not_called_a_cap() -> None:
    counter = Counter(capped(1, "3.00"), capped(2, "2.00"))
    counter.counts.is_away = True

    assert await counter.served_later() is None

    assert counter.routes.unfilled == {
        "nobody": 0,
        "frequency_cap": 0,
        "frequency_unknown": 1,
        "not_held": 0,
    }
    [auction] = counter.entries()
    assert isinstance(auction, Auctioned)
    assert auction.removed == (RemovedCandidates("frequency_unknown", 2),)


async def test_nor_is_it_in_a_large_market() -> None:
    counter = Counter(*[capped(number, "2.00") for number in range(1, 301)])
    counter.counts.is_away = True

    assert await counter.served_later() is None

    [auction] = counter.entries()
    assert isinstance(auction, Auctioned)
    assert auction.removed == (RemovedCandidates("frequency_unknown", 300),)


async def test_a_batch_is_worked_out_and_then_sent_and_one_failure_stops_no_other() -> None:
    counter = Counter(capped(1, "3.00"), a_row(2, "2.00"))
    lines: list[str] = []

    class Asking:
        def __init__(self, name: str) -> None:
            self._name = name

        def work_out(self, seen: SeenBanners) -> None:
            lines.append(f"{self._name} knows {len(seen.enough)}")

        def send(self) -> None:
            lines.append(f"{self._name} is told")
            if self._name == "a":
                raise RuntimeError("The socket is gone.")

    banners = CappedBanners({Window.DAY: {name_of(1): (2, 1)}}, {Window.DAY: 2}, SeenBanners())
    for name, user in (("a", USER), ("b", an_id(101))):
        counter.frequency.look_up((str(user),), banners, Asking(name))
    counter.counts.shown[USER] = [seen(1, 2)]

    with capture_logs() as logs:
        async with asyncio.timeout(5):
            while len(lines) < 4:  # noqa: ASYNC110 - a task of the look's own
                await asyncio.sleep(0)

    assert lines == ["a knows 1", "b knows 0", "a is told", "b is told"]
    assert [entry["event"] for entry in logs] == ["frequency_not_told"]
