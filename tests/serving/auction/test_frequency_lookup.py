"""Frequency caps are looked up where they matter, in one batch for concurrent requests, with a fallback on failure."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from adloom.events.frequency.counts import USERS_MAX, BannerFrequency
from adloom.events.frequency.windows import Window
from adloom.events.log.event import AuctionEntry, RemovedCandidates
from adloom.runtime.http.fast.fast_routes import DeferredAnswer
from adloom.serving.eligibility.frequency_lookup import AWAY_SECONDS, CappedAds, CappedBanners, SeenBanners
from adloom.serving.index.rows import AssignmentRow, FrequencyLimit
from tests.serving.auction.auction_server import USER, AuctionServer, read_ad
from tests.serving.auction.marketplace import a_row
from tests.support.rows import an_id

pytestmark = pytest.mark.anyio

TWICE_A_DAY = (FrequencyLimit(Window.DAY, 2), FrequencyLimit(Window.LIFETIME, 5))
NO_USER = "00000000-0000-0000-0000-000000000000"


def capped(number: int, bid: str, **fields: Any) -> AssignmentRow:
    return a_row(number, bid, frequency=TWICE_A_DAY, **fields)


def banner_id_of(number: int) -> str:
    return str(a_row(number, "1").banner_id)


def seen(number: int, times: int, window: Window = Window.DAY) -> BannerFrequency:
    return BannerFrequency(window, banner_id_of(number), times)


async def test_nothing_is_looked_up_if_no_cap_can_matter() -> None:
    server = AuctionServer(a_row(1, "2.00"), a_row(2, "1.00"), capped(3, "0.50"))

    assert server.served() is not None
    assert server.counts.asked == []


async def test_a_visitor_who_has_seen_an_ad_often_enough_gets_the_next() -> None:
    server = AuctionServer(capped(1, "3.00"), a_row(2, "2.00"), a_row(3, "1.00"))
    server.counts.shown[USER] = [seen(1, 2)]

    ad = await server.served_later()

    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (banner_id_of(2), 1.01)
    [auction] = server.entries()
    assert isinstance(auction, AuctionEntry)
    assert auction.removed == (RemovedCandidates("frequency_cap", 1),)


async def test_a_visitor_who_is_below_the_cap_gets_the_ad() -> None:
    server = AuctionServer(capped(1, "3.00"), a_row(2, "2.00"))
    server.counts.shown[USER] = [seen(1, 1), seen(1, 4, Window.LIFETIME)]

    ad = await server.served_later()

    assert ad is not None
    assert ad["adId"] == banner_id_of(1)


async def test_every_cap_of_a_banner_applies() -> None:
    server = AuctionServer(capped(1, "3.00"), a_row(2, "2.00"))
    server.counts.shown[USER] = [seen(1, 1), seen(1, 5, Window.LIFETIME)]

    ad = await server.served_later()

    assert ad is not None
    assert ad["adId"] == banner_id_of(2)
    assert server.counts.least == [{Window.DAY: 2, Window.LIFETIME: 5}]


async def test_a_second_bid_that_reached_its_cap_does_not_set_the_price() -> None:
    server = AuctionServer(a_row(1, "3.00"), capped(2, "2.00"), a_row(3, "1.00"))
    server.counts.shown[USER] = [seen(2, 2)]

    ad = await server.served_later()

    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (banner_id_of(1), 1.01)


async def test_concurrent_requests_share_a_look_up() -> None:
    server = AuctionServer(capped(1, "3.00"), a_row(2, "2.00"))
    users = [an_id(100 + number) for number in range(20)]
    server.counts.shown = {user: [seen(1, 2)] for user in users[::2]}

    answers = [server.ask(userId=str(user)) for user in users]
    ads = [read_ad(await answer) for answer in answers if isinstance(answer, DeferredAnswer)]

    assert [ad and ad["adId"] for ad in ads] == [banner_id_of(2), banner_id_of(1)] * 10
    assert server.counts.asked == [users]


@pytest.mark.parametrize(("when_away", "expected"), [(CappedAds.WITHHOLD, 2), (CappedAds.OFFER, 1)])
async def test_the_setting_decides_if_the_look_up_fails(when_away: CappedAds, expected: int) -> None:
    server = AuctionServer(capped(1, "3.00"), a_row(2, "2.00"), when_away=when_away)
    server.counts.is_away = True

    first = await server.served_later()
    second = server.served()  # After a failure there is no look-up for a while.

    assert [one and one["adId"] for one in (first, second)] == [banner_id_of(expected)] * 2
    assert len(server.counts.asked) == 1
    lookup = server.frequency
    assert (lookup.failures, lookup.withheld_unknown + lookup.offered_unknown) == (1, 2)


async def test_a_failed_look_up_is_not_repeated_for_requests_that_came_meanwhile() -> None:
    server = AuctionServer(capped(1, "3.00"), a_row(2, "2.00"))
    server.counts.is_away = True
    first = server.ask()
    begun_at = time.monotonic()
    await asyncio.sleep(0)  # Its look-up is under way.

    others = [server.ask() for _ in range(2 * USERS_MAX + 1)]
    ads = [read_ad(await answer) for answer in (first, *others) if isinstance(answer, DeferredAnswer)]

    assert [ad and ad["adId"] for ad in ads] == [banner_id_of(2)] * (2 * USERS_MAX + 2)
    assert server.counts.asked[0] == [USER]
    # A busy machine needs so long for the answers that it is time to try again.
    assert len(server.counts.asked) <= 1 + (time.monotonic() - begun_at) // AWAY_SECONDS
    assert server.frequency.withheld_unknown == len(ads)


@pytest.mark.parametrize(("without_user", "expected"), [(CappedAds.WITHHOLD, 2), (CappedAds.OFFER, 1)])
async def test_nothing_is_looked_up_for_an_unknown_user(without_user: CappedAds, expected: int) -> None:
    server = AuctionServer(capped(1, "3.00"), a_row(2, "2.00"), without_user=without_user)

    ad = server.served(userId=NO_USER)

    assert ad is not None
    assert ad["adId"] == banner_id_of(expected)
    assert "?" not in ad["impressionUrl"]
    assert server.counts.asked == []


async def test_no_ad_is_served_if_all_have_reached_their_caps() -> None:
    server = AuctionServer(capped(1, "3.00"))
    server.counts.shown[USER] = [seen(1, 2)]

    assert await server.served_later() is None
    assert server.routes.unfilled == {
        "nobody": 0,
        "frequency_cap": 1,
        "frequency_unknown": 0,
        "not_held": 0,
    }


async def test_the_next_best_ad_is_looked_up_if_there_was_no_look_up_before() -> None:
    limited = [a_row(1, "10.00", is_limited=True), a_row(2, "9.00", is_limited=True)]
    server = AuctionServer(*limited, capped(3, "8.00"), a_row(4, "1.00"))
    server.counts.shown[USER] = [seen(3, 2)]
    server.grant(100_000)
    server.clock.advance(timedelta(hours=2))  # Both leases have ended, and that is not reported yet.

    ad = await server.served_later()

    assert ad is not None
    assert ad["adId"] == banner_id_of(4)


@pytest.mark.parametrize("sample_rate", [0.0, 1.0])
async def test_a_second_bid_is_not_lost_with_a_winner_that_cannot_be_reserved(sample_rate: float) -> None:
    rows = a_row(1, "10.00", is_limited=True), a_row(2, "9.50"), capped(3, "9.00")
    server = AuctionServer(*rows, sample_rate=sample_rate)
    server.grant(100_000)
    server.clock.advance(timedelta(hours=2))

    ad = await server.served_later()

    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (banner_id_of(2), 9.01)
    assert server.counts.asked == [[USER]]
    [entry] = server.entries()
    if isinstance(entry, AuctionEntry):
        assert (entry.bid_count, entry.removed) == (2, (RemovedCandidates("budget_pending", 1),))


@pytest.mark.parametrize(("when_away", "price"), [(CappedAds.WITHHOLD, 1.01), (CappedAds.OFFER, 8.01)])
async def test_a_looked_up_ad_is_next_best_and_the_setting_decides_on_others(
    when_away: CappedAds, price: float
) -> None:
    rows = capped(1, "10.00", is_limited=True), capped(2, "9.00"), capped(3, "8.00"), a_row(4, "1.00")
    server = AuctionServer(*rows, sample_rate=0.0, when_away=when_away)
    server.grant(100_000)
    server.clock.advance(timedelta(hours=2))

    ad = await server.served_later()

    assert server.counts.banners == [(banner_id_of(1), banner_id_of(2))]
    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (banner_id_of(2), price)
    lookup = server.frequency
    is_offered = when_away is CappedAds.OFFER
    assert (lookup.offered_unknown, lookup.withheld_unknown) == (is_offered, not is_offered)


@pytest.mark.parametrize(("shown", "price"), [(1, 8.01), (2, 1.01)])
async def test_a_pace_is_drawn_once_although_a_look_up_comes_between(shown: int, price: float) -> None:
    draws = iter([0.9, 0.1])  # The first is let through, the second left out.
    limited = [a_row(1, "10.00", is_limited=True), a_row(2, "9.00", is_limited=True)]
    server = AuctionServer(
        *limited, capped(3, "8.00"), a_row(4, "1.00"), sample_rate=0.0, draw=draws.__next__
    )
    server.counts.shown[USER] = [seen(3, shown)]
    server.grant(100_000, throttle=0.5)

    ad = await server.served_later()

    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (banner_id_of(1), price)
    assert next(draws, None) is None


async def test_a_third_bid_is_not_looked_up() -> None:
    rows = capped(1, "10.00", is_limited=True), a_row(2, "9.00"), a_row(3, "8.00"), capped(4, "7.00")
    server = AuctionServer(*rows, sample_rate=0.0)
    server.grant(100_000)
    server.clock.advance(timedelta(hours=2))

    ad = await server.served_later()

    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (banner_id_of(2), 8.01)
    assert server.frequency.withheld_unknown == 0


async def test_an_ad_that_was_not_looked_up_is_withheld() -> None:
    limited = [capped(1, "10.00", is_limited=True), capped(2, "9.00", is_limited=True)]
    server = AuctionServer(*limited, capped(3, "8.00"), a_row(4, "1.00"), sample_rate=0.0)
    server.counts.shown[USER] = [seen(3, 2)]
    server.grant(100_000)
    server.clock.advance(timedelta(hours=2))

    ad = await server.served_later()

    assert ad is not None
    assert ad["adId"] == banner_id_of(4)


async def test_only_ads_that_may_win_or_be_second_are_looked_up() -> None:
    rows = capped(1, "3.00"), a_row(2, "2.00"), capped(3, "1.00")
    recorded, unrecorded = AuctionServer(*rows), AuctionServer(*rows, sample_rate=0.0)

    for server in (recorded, unrecorded):
        assert await server.served_later() is not None

    # The record needs the counts of all banners.
    assert recorded.counts.banners == [()]
    assert unrecorded.counts.banners == [(banner_id_of(1),)]


async def test_an_ad_that_takes_the_lead_during_the_look_up_is_not_offered_without_one() -> None:
    rows = capped(1, "10.00"), capped(2, "9.00"), capped(3, "8.00"), a_row(4, "1.00")
    server = AuctionServer(*rows, sample_rate=0.0)
    server.counts.shown[USER] = [seen(3, 2)]

    later = server.ask()
    server.states.mark_changed({1: "budget", 2: "budget"})
    assert isinstance(later, DeferredAnswer)
    ad = read_ad(await later)

    assert server.counts.banners == [(banner_id_of(1), banner_id_of(2))]
    assert ad is not None
    assert ad["adId"] == banner_id_of(4)


@pytest.mark.parametrize(("when_away", "price"), [(CappedAds.WITHHOLD, 1.01), (CappedAds.OFFER, 8.01)])
async def test_a_looked_up_ad_is_offered_although_other_campaigns_change_meanwhile(
    when_away: CappedAds, price: float
) -> None:
    rows = a_row(1, "10.00"), capped(2, "9.00"), capped(3, "8.00"), a_row(4, "1.00")
    server = AuctionServer(*rows, sample_rate=0.0, when_away=when_away)

    later = server.ask()
    server.states.mark_changed({1: "budget"})
    assert isinstance(later, DeferredAnswer)
    ad = read_ad(await later)

    assert server.counts.banners == [(banner_id_of(2),)]
    assert ad is not None
    assert (ad["adId"], ad["finalPrice"]) == (banner_id_of(2), price)
    lookup = server.frequency
    is_offered = when_away is CappedAds.OFFER
    assert (lookup.offered_unknown, lookup.withheld_unknown) == (is_offered, not is_offered)


async def test_an_unknown_count_is_not_recorded_as_a_reached_cap() -> None:
    server = AuctionServer(capped(1, "3.00"), capped(2, "2.00"))
    server.counts.is_away = True

    assert await server.served_later() is None

    assert server.routes.unfilled == {
        "nobody": 0,
        "frequency_cap": 0,
        "frequency_unknown": 1,
        "not_held": 0,
    }
    [auction] = server.entries()
    assert isinstance(auction, AuctionEntry)
    assert auction.removed == (RemovedCandidates("frequency_unknown", 2),)


async def test_an_unknown_count_is_not_recorded_as_a_reached_cap_in_a_large_market() -> None:
    server = AuctionServer(*[capped(number, "2.00") for number in range(1, 301)])
    server.counts.is_away = True

    assert await server.served_later() is None

    [auction] = server.entries()
    assert isinstance(auction, AuctionEntry)
    assert auction.removed == (RemovedCandidates("frequency_unknown", 300),)


async def test_a_batch_is_decided_before_it_is_sent_and_one_failure_does_not_stop_the_others() -> None:
    server = AuctionServer(capped(1, "3.00"), a_row(2, "2.00"))
    steps: list[str] = []

    class PendingRequest:
        def __init__(self, name: str) -> None:
            self._name = name

        def work_out(self, seen: SeenBanners) -> None:
            steps.append(f"{self._name} decides with {len(seen.enough)}")

        def send(self) -> None:
            steps.append(f"{self._name} is sent")
            if self._name == "a":
                raise RuntimeError("The socket is gone.")

    banners = CappedBanners({Window.DAY: {banner_id_of(1): (2, 1)}}, {Window.DAY: 2}, SeenBanners())
    for name, user in (("a", USER), ("b", an_id(101))):
        server.frequency.look_up((str(user),), banners, PendingRequest(name))
    server.counts.shown[USER] = [seen(1, 2)]

    with capture_logs() as logs:
        async with asyncio.timeout(60):
            while len(steps) < 4:  # noqa: ASYNC110 - the look-up runs in its own task
                await asyncio.sleep(0)

    assert steps == ["a decides with 1", "b decides with 0", "a is sent", "b is sent"]
    assert [entry["event"] for entry in logs] == ["frequency_not_told"]
