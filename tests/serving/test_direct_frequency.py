"""Frequency caps hold in direct delivery too, for a request that names its user."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import msgspec
import pytest

from adloom.core.clock import ManualClock
from adloom.core.ids import NO_USER
from adloom.events.frequency.counts import BannerFrequency
from adloom.events.frequency.windows import Window
from adloom.runtime.http.fast.fast_routes import DeferredAnswer, FastAnswer, FastRequest
from adloom.serving.direct.frequency import DirectFrequency
from adloom.serving.eligibility.frequency_lookup import FrequencyLookup
from adloom.serving.index.rows import AssignmentRow, FrequencyLimit
from tests.serving.auction.auction_server import FakeCounts
from tests.serving.test_reserve import a_row
from tests.serving.test_serve import KEYS, NOON, serve_routes
from tests.support.rows import a_snapshot, an_id

pytestmark = pytest.mark.anyio

USER = an_id(77)
TWICE_A_DAY = (FrequencyLimit(Window.DAY, 2),)


def capped(number: int, **fields: Any) -> AssignmentRow:
    return a_row(number, number, display_order=number, frequency=TWICE_A_DAY, **fields)


def uncapped(number: int, **fields: Any) -> AssignmentRow:
    return a_row(number, number, display_order=number, **fields)


class Server:
    """The serve routes, and what users have seen."""

    def __init__(self, *rows: AssignmentRow, **placement: Any) -> None:
        self.counts = FakeCounts()
        lookup = FrequencyLookup(self.counts, ManualClock(NOON))
        self.routes = serve_routes(a_snapshot(*rows, **placement), frequency=DirectFrequency(lookup))

    def see(self, row: AssignmentRow, times: int) -> None:
        shown = self.counts.shown.setdefault(USER, [])
        shown.append(BannerFrequency(Window.DAY, str(row.banner_id), times))

    async def served(self, user: UUID | None = USER) -> list[UUID]:
        query = b"" if user is None else b"userId=" + str(user).encode()
        return _read(await _wait(self.routes.serve(FastRequest(b"GET", b"/banners/serve/home", query))))

    async def served_page(self, user: UUID = USER) -> list[UUID]:
        body = json.dumps({"placements": ["home"], "userId": str(user)}).encode()
        answer = await _wait(self.routes.serve_page(FastRequest(b"POST", b"/banners/serve", body=body)))
        banners = json.loads(answer.body)["results"]["home"]["banners"]
        return [UUID(banner["id"]) for banner in banners]


async def _wait(answer: FastAnswer | DeferredAnswer) -> FastAnswer:
    return answer if isinstance(answer, FastAnswer) else await answer


def _read(answer: FastAnswer) -> list[UUID]:
    return [UUID(banner["id"]) for banner in json.loads(answer.body)["banners"]]


async def test_a_visitor_who_has_seen_a_banner_often_enough_gets_the_next() -> None:
    first, second = capped(1), uncapped(2)
    server = Server(first, second, max_banners=1)

    assert await server.served() == [first.banner_id]
    server.see(first, 2)

    assert await server.served() == [second.banner_id]
    assert await server.served_page() == [second.banner_id]


async def test_a_visitor_who_is_below_the_cap_gets_the_banner() -> None:
    first = capped(1)
    server = Server(first, uncapped(2), max_banners=1)
    server.see(first, 1)

    assert await server.served() == [first.banner_id]
    assert await server.served_page() == [first.banner_id]


async def test_a_banner_of_two_campaigns_is_once_in_a_placement() -> None:
    first, again = capped(1), msgspec.structs.replace(capped(2), banner_key=1, banner_id=capped(1).banner_id)
    server = Server(first, again, uncapped(3), max_banners=3)

    assert await server.served() == [first.banner_id, uncapped(3).banner_id]


@pytest.mark.parametrize("user", [None, NO_USER])
async def test_without_a_user_a_cap_cannot_hold_and_nothing_is_looked_up(user: UUID | None) -> None:
    first = capped(1)
    server = Server(first, max_banners=1)

    assert await server.served(user) == [first.banner_id]
    assert server.counts.asked == []


async def test_nothing_is_looked_up_for_a_placement_without_capped_banners() -> None:
    row = uncapped(1)
    server = Server(row)

    answer = server.routes.serve(
        FastRequest(b"GET", b"/banners/serve/home", b"userId=%b" % str(USER).encode())
    )

    assert isinstance(answer, FastAnswer)
    assert server.counts.asked == []


async def test_capped_banners_are_withheld_while_it_is_unknown_what_was_seen() -> None:
    first, second = capped(1), uncapped(2)
    server = Server(first, second, max_banners=1)
    server.counts.is_away = True

    assert await server.served() == [second.banner_id]


async def test_fallbacks_and_evergreens_stand_in_for_what_was_seen() -> None:
    first = capped(1)
    fallback = uncapped(2, is_fallback=True)
    evergreen = uncapped(3, is_fallback=True, is_evergreen_fallback=True)
    with_fallback = Server(first, fallback, max_banners=1, allow_partial_render=True)
    alone = Server(first, evergreen, max_banners=1, allow_partial_render=False)
    for server in (with_fallback, alone):
        server.see(first, 2)

    assert await with_fallback.served() == [fallback.banner_id]
    assert await alone.served() == [evergreen.banner_id]


async def test_the_pixel_of_an_offer_has_the_user_so_that_it_counts() -> None:
    server = Server(capped(1))
    query = b"userId=" + str(USER).encode()

    answer = await _wait(server.routes.serve(FastRequest(b"GET", b"/banners/serve/home", query)))

    body = json.loads(answer.body)
    [banner] = body["banners"]
    address: str = banner["impressionUrl"]
    [sealed] = parse_qs(urlsplit(address).query)["u"]
    assert str(USER) not in address
    assert KEYS.signer.open_user(sealed.encode(), UUID(body["requestId"]).bytes) == USER
