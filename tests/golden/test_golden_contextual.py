"""Every JSON file below `delivery/contextual` is a case: a request to a contextual route, its answer, what is queued."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from adloom.core.delivery import Delivery
from adloom.core.ids import PlacementId, SiteId
from adloom.pages.follow.page_table import NO_PAGES, PageEntry
from adloom.pages.model import PageCategory, compute_expiry
from adloom.serving.index.compile import compile_index
from adloom.serving.index.index import Index
from adloom.serving.index.rows import Snapshot
from tests.support.contextual import NOON, SITE, World, make_slot_routes
from tests.support.golden import Expected, Step, compare, matches
from tests.support.hot_server import serving
from tests.support.rows import a_placement_row, a_site_row, an_id

FOLDER = Path(__file__).parent / "delivery" / "contextual"
CASES = sorted(FOLDER.rglob("*.json"))
UNVERIFIED = SiteId(an_id(101))
CODES = {
    "VALIDATION_FAILED": 400,
    "SITE_HOST_MISMATCH": 403,
    "METHOD_NOT_ALLOWED": 405,
    "BODY_TOO_LARGE": 413,
    "RATE_LIMITED": 429,
    "UNAVAILABLE": 503,
}


class ContextualCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request, an answer, and the relevant fields of what is queued; `textBytes` makes a text of that size."""

    request: Step
    expect: Expected
    queued: list[dict[str, Any]] = []
    queue: str = "there"
    text_bytes: int = 0


def read_case(path: Path) -> ContextualCase:
    return msgspec.json.decode(path.read_bytes(), type=ContextualCase)


def an_index() -> Index:
    """A verified site with a known and a stale page and two slots, and one that is not verified, with one slot."""

    def a_slot(key: int, slug: str, site_key: int) -> Any:
        return a_placement_row(
            key=key, id=PlacementId(an_id(key)), slug=slug, delivery=Delivery.CONTEXTUAL, site_key=site_key
        )

    return compile_index(
        Snapshot(
            version=1,
            placements=[a_slot(1, "top", 1), a_slot(2, "side", 1), a_slot(3, "elsewhere", 2)],
            assignments=[],
            banner_ids=[],
            campaign_ids=[],
            sites=[
                a_site_row(key=1, id=SITE, domain="example.com", verified_host="example.com"),
                a_site_row(key=2, id=UNVERIFIED, domain="unverified.example"),
            ],
        )
    )


def a_world(case: ContextualCase) -> World:
    world = World(an_index())
    ages = {"known": timedelta(hours=1), "stale": timedelta(hours=50)}
    world.pages.tables[SITE] = NO_PAGES.with_changes(
        PageEntry(
            f"example.com/{name}", 1, (PageCategory("483", 0.9),), NOON - age, compute_expiry(NOON - age)
        )
        for name, age in ages.items()
    )
    world.queue.is_away = case.queue == "away"
    world.queue.room = 0 if case.queue == "full" else 10
    return world


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.relative_to(FOLDER).with_suffix("").as_posix())
async def test_golden_contextual(path: Path) -> None:
    case = read_case(path)
    world = a_world(case)
    slots = make_slot_routes(world.index, world.pages, recent=world.recent)
    async with serving([*world.routes.list_routes(), *slots.list_routes()]) as client:
        answer = await asked(case, client)

    assert answer.status_code == case.expect.status, answer.text
    for name, value in case.expect.headers.items():
        assert matches(answer.headers.get(name), value), f"{name}: {answer.headers.get(name)!r}"
    if case.expect.body is not msgspec.UNSET:
        compare(answer.json(), case.expect.body, "body")
    queued = [msgspec.to_builtins(one) for one in world.queue.put_requests]
    assert len(queued) == len(case.queued)
    for place, (one, expected) in enumerate(zip(queued, case.queued, strict=True)):
        compare(one, expected, f"queued.{place}")


def test_every_code_of_the_contextual_routes_has_a_case_with_its_status() -> None:
    problems = [case.expect for case in map(read_case, CASES) if case.expect.body is not msgspec.UNSET]

    assert CODES.items() <= {(expect.body.get("errorCode"), expect.status) for expect in problems}


async def asked(case: ContextualCase, client: httpx.AsyncClient) -> httpx.Response:
    method, _, path = case.request.do.partition(" ")
    content = case.request.raw
    if case.request.body is not msgspec.UNSET:
        text = {"text": "x" * case.text_bytes} if case.text_bytes else {}
        content = msgspec.json.encode(case.request.body | text).decode()
    return await client.request(method, path, headers=case.request.headers, content=content)
