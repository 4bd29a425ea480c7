"""Who may make offers hold budget, and how many requests an address may send."""

import json
from datetime import timedelta
from ipaddress import ip_network
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.messages import UNHELD_LEASE
from adloom.core.clock import ManualClock
from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.core.money import Micros
from adloom.events.ingest.ivt.detector import TrafficDetector
from adloom.events.ingest.ivt.minute_counts import MINUTE_SECONDS, WIDE_FACTOR, MinuteCounts
from adloom.events.ingest.token import OfferTerms, OfferToken, TokenSigner
from adloom.events.log.event import ChargedBy
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastResult, FastRoute
from adloom.runtime.http.networks import Networks
from adloom.serving.index.rows import OfferPrice
from adloom.serving.request.open_holds import OpenHolds
from adloom.serving.request.rate_limit import RequestLimiter
from adloom.serving.request.sender_limits import SenderCheck
from tests.serving.test_serve import KEYS, NOON, serve_routes
from tests.support.answers import at_once
from tests.support.rows import a_snapshot, an_assignment_row

READER, CRAWLER = b"Mozilla/5.0", b"Somebot/1.0"
CLOUD = "198.51.100.9"
SECOND = int(NOON.timestamp())
PRICE = OfferPrice(Micros(1_000_000), ChargedBy.CLICK)
A_NETWORK = bytes.fromhex("20010db800010002")


def a_detector() -> TrafficDetector:
    return TrafficDetector(
        lambda agent: b"bot" in agent, data_centers=Networks([ip_network("198.51.100.0/24")])
    )


def a_check(*, requests_per_minute_max: int = 0, **bounds: int) -> SenderCheck:
    requests = MinuteCounts(requests_per_minute_max)
    return SenderCheck(a_detector().identify_sender, requests=requests, **bounds)


def a_request(client: str = "203.0.113.7", agent: bytes = READER) -> FastRequest:
    headers = [(b"user-agent", agent)]
    return FastRequest(b"GET", b"/banners/serve/home", headers=headers, client=client)


def offer_of(answer: FastResult) -> OfferToken:
    [banner] = json.loads(at_once(answer).body)["banners"]
    token = KEYS.verify(banner["trackingToken"].encode(), now=NOON)
    assert isinstance(token, OfferToken)
    return token


@pytest.mark.parametrize(
    ("client", "agent", "is_billed"),
    [("203.0.113.7", READER, True), ("203.0.113.7", CRAWLER, False), (CLOUD, READER, False)],
)
def test_offers_for_crawlers_and_data_centres_are_free(client: str, agent: bytes, *, is_billed: bool) -> None:
    routes = serve_routes(a_snapshot(an_assignment_row(price=PRICE)), senders=a_check())

    offer = offer_of(routes.serve(a_request(client, agent)))

    assert offer.charge == (PRICE.cost if is_billed else 0)
    assert offer.lease == 0


def test_offers_beyond_the_bound_of_an_address_hold_nothing_until_the_holds_are_over() -> None:
    clock = ManualClock(NOON)
    row = an_assignment_row(price=PRICE)
    routes = serve_routes(a_snapshot(row), clock, senders=a_check(holds_max=3, hold_seconds=300))

    def may_hold(count: int, client: str = "203.0.113.7") -> list[bool]:
        offers = [offer_of(routes.serve(a_request(client))) for _ in range(count)]
        assert [one.charge for one in offers] == [PRICE.cost] * count
        return [one.lease != UNHELD_LEASE for one in offers]

    assert may_hold(5) == [True, True, True, False, False]
    assert may_hold(1, "203.0.113.8") == [True]
    clock.advance(timedelta(seconds=600))
    assert may_hold(1) == [True]


SIGNER = TokenSigner("a secret of the tests, long enough")


def an_offer(number: int, *, charge: int = 1, **fields: Any) -> OfferToken:
    terms = OfferTerms(
        banner_id=BannerId(UUID(int=1)),
        placement_id=PlacementId(UUID(int=2)),
        campaign_id=CampaignId(UUID(int=3)),
        charge=Micros(charge),
    )
    token = OfferToken(
        request=UUID(int=number).bytes,
        slot=0,
        terms=terms,
        second=int(NOON.timestamp()),
        tick=0,
        is_expired=False,
        signer=SIGNER,
        lease=9,
    )
    return msgspec.structs.replace(token, **fields)


def test_offers_that_are_seen_are_no_longer_out() -> None:
    check, request = a_check(holds_max=2), a_request()
    sender = a_detector().identify_sender(request)

    held: list[bool] = []
    for number in range(20):
        held.append(check.may_hold(request, 1, SECOND))
        check.note_seen(sender, an_offer(number), SECOND)

    assert all(held)


@pytest.mark.parametrize(
    "reported",
    [
        an_offer(1),
        an_offer(2, lease=0, charge=0),
        an_offer(3, is_expired=True),
        an_offer(4, lease=UNHELD_LEASE),
    ],
    ids=["repeated", "free", "expired", "unheld"],
)
def test_a_token_that_is_repeated_free_expired_or_unheld_makes_room_for_no_other_offer(
    reported: OfferToken,
) -> None:
    check, request = a_check(holds_max=2), a_request()
    sender = a_detector().identify_sender(request)
    check.note_seen(sender, an_offer(1), SECOND)

    held: list[bool] = []
    for _ in range(10):
        held.append(check.may_hold(request, 1, SECOND))
        check.note_seen(sender, reported, SECOND)

    assert sum(held) == 3


def test_a_flood_of_requests_gets_offers_that_hold_nothing() -> None:
    check = a_check(requests_per_minute_max=5)

    held = [check.may_hold(a_request(), 1, SECOND) for _ in range(7)]

    assert held == [True] * 5 + [False] * 2
    assert check.free == {"doubtful_sender": 0, "address_flood": 2, "open_holds": 0}
    assert check.may_hold(a_request(), 1, SECOND + MINUTE_SECONDS)
    assert [check.is_doubtful(a_request(agent=agent)) for agent in (READER, CRAWLER)] == [False, True]


@pytest.mark.parametrize(
    ("requests_max", "holds_max", "why"),
    [(2, 7, "address_flood"), (9, 2, "open_holds"), (9, 4, "open_holds")],
)
def test_a_page_is_one_request_and_its_offers_all_hold_or_none(
    requests_max: int, holds_max: int, why: str
) -> None:
    rows = [
        an_assignment_row(banner_id=BannerId(UUID(int=number)), banner_key=number, price=PRICE)
        for number in range(1, 4)
    ]
    check = a_check(requests_per_minute_max=requests_max, holds_max=holds_max)
    routes = serve_routes(a_snapshot(*rows, max_banners=3), senders=check)
    body = json.dumps({"placements": ["home"]}).encode()

    def may_hold() -> list[bool]:
        request = FastRequest(b"POST", b"/banners/serve", headers=[], body=body, client="203.0.113.7")
        banners = json.loads(at_once(routes.serve_page(request)).body)["results"]["home"]["banners"]
        tokens = [KEYS.verify(banner["trackingToken"].encode(), now=NOON) for banner in banners]
        offers = [token for token in tokens if isinstance(token, OfferToken)]
        assert [one.charge for one in offers] == [PRICE.cost] * 3
        return [one.lease != UNHELD_LEASE for one in offers]

    held = 1 + (holds_max > 3)  # The answer that comes to the bound goes beyond it.
    assert [may_hold() for _ in range(3)] == [[True] * 3] * held + [[False] * 3] * (3 - held)
    assert {reason: count for reason, count in check.free.items() if count} == {why: 3 - held}


def test_networks_of_a_48_share_a_wider_bound() -> None:
    check = a_check(holds_max=2)

    held = [check.may_hold(a_request(f"2001:db8:1:{number:x}::1"), 1, SECOND) for number in range(20)]

    assert sum(held) == WIDE_FACTOR * 2


def test_an_internal_address_is_an_undeclared_proxy_and_has_no_bound() -> None:
    check = a_check(holds_max=1, requests_per_minute_max=1)

    assert all(check.may_hold(a_request("127.0.0.1"), 1, SECOND) for _ in range(10))


def test_the_memory_of_open_holds_is_bounded() -> None:
    holds = OpenHolds(1, hold_seconds=300, addresses_max=10)

    for number in range(100):
        holds.find(number.to_bytes(4)).take(1, SECOND)

    assert len(holds) == 10


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 700), st.booleans()), max_size=80))
def test_no_address_has_more_offers_out_than_its_bound(asked: list[tuple[int, int, bool]]) -> None:
    bound, hold_seconds = 5, 300
    holds = OpenHolds(bound, hold_seconds=hold_seconds)
    made: list[tuple[int, int]] = []
    second = SECOND

    for address, seconds, is_seen in asked:
        second += seconds
        if is_seen and (address, second) in made:
            made.remove((address, second))
            holds.find(address.to_bytes(4)).release(second)
        elif holds.find(address.to_bytes(4)).take(1, second):
            made.append((address, second))
        out = [at for one, at in made if one == address and at > second - hold_seconds]
        assert len(out) <= bound


# --- the limit of requests


def limited(bound: int, read_second: Any = lambda: 1_000.0) -> tuple[RequestLimiter, Any]:
    limiter = RequestLimiter(MinuteCounts(bound), a_detector(), read_second)
    [route] = limiter.limit(
        [FastRoute(b"GET", b"/x", is_prefix=False, handler=lambda _: FastAnswer(b"HTTP/1.1 200 OK\r\n"))]
    )
    return limiter, route.handler


def test_requests_beyond_the_limit_of_an_address_are_answered_429_with_a_time_to_wait() -> None:
    limiter, handler = limited(3)

    answers = [handler(a_request()) for _ in range(5)]

    assert [answer.head.split()[1] for answer in answers] == [b"200"] * 3 + [b"429"] * 2
    assert b"retry-after: 60\r\n" in answers[-1].head
    assert json.loads(answers[-1].body)["errorCode"] == "RATE_LIMITED"
    assert limiter.refused == 2
    assert handler(a_request("203.0.113.8")).head.split()[1] == b"200"


def test_the_limit_begins_again_with_the_next_minute() -> None:
    seconds = iter([1_000.0, 1_000.0, 1_059.9, 1_060.0])
    _, handler = limited(1, lambda: next(seconds))

    statuses = [handler(a_request()).head.split()[1] for _ in range(4)]

    assert statuses == [b"200", b"429", b"429", b"200"]


def test_clients_behind_a_trusted_proxy_are_counted_each_by_itself() -> None:
    detector = TrafficDetector(lambda _: False, trusted=[ip_network("10.0.0.0/8")])
    limiter = RequestLimiter(MinuteCounts(1), detector, lambda: 1_000.0)
    [route] = limiter.limit(
        [FastRoute(b"GET", b"/x", is_prefix=False, handler=lambda _: FastAnswer(b"HTTP/1.1 200 OK\r\n"))]
    )

    def ask(forwarded: bytes) -> bool:
        request = FastRequest(b"GET", b"/x", headers=[(b"x-forwarded-for", forwarded)], client="10.0.0.1")
        return at_once(route.handler(request)).head.split()[1] == b"200"

    assert [ask(b"203.0.113.7"), ask(b"203.0.113.7"), ask(b"203.0.113.8")] == [True, False, True]


def test_addresses_of_one_64_share_a_count() -> None:
    _, handler = limited(2)

    statuses = [handler(a_request(f"2001:db8:1:2::{number}")).head.split()[1] for number in range(1, 4)]

    assert statuses == [b"200", b"200", b"429"]


def test_networks_of_one_48_share_a_wider_count_whose_minute_is_waited_for() -> None:
    clock = iter([1_000.0] * WIDE_FACTOR + [1_030.0])
    _, handler = limited(1, lambda: next(clock))

    answers = [handler(a_request(f"2001:db8:1:{number:x}::1")) for number in range(WIDE_FACTOR + 1)]

    assert [answer.head.split()[1] for answer in answers] == [b"200"] * WIDE_FACTOR + [b"429"]
    assert b"retry-after: 30\r\n" in answers[-1].head


def test_the_memory_of_counts_is_bounded() -> None:
    counts = MinuteCounts(1, addresses_max=10)

    for number in range(100):
        counts.find(number.to_bytes(4)).exceeds(SECOND)

    assert len(counts) == 10


def test_a_clock_that_goes_back_begins_another_minute() -> None:
    count = MinuteCounts(1).find(A_NETWORK[:4])

    assert [count.exceeds(at) for at in (1_000, 1_000, 400, 400)] == [False, True, False, True]


def test_without_a_bound_nothing_is_exceeded() -> None:
    count = MinuteCounts(0).find(A_NETWORK)

    assert not any(count.exceeds(SECOND) for _ in range(100))
