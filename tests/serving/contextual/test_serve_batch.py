"""The slots of a page: what is known of the page, and when its text is wanted."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adloom.core.delivery import Delivery
from adloom.core.errors import ValidationFailedError
from adloom.core.ids import PlacementId, SiteId
from adloom.pages.follow.page_table import NO_PAGES, PageEntry, PageTable
from adloom.pages.model import compute_expiry
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from adloom.serving.contextual.page_host import SiteHostMismatchError
from adloom.serving.contextual.recent_texts import RecentTexts
from adloom.serving.index.compile import compile_index
from adloom.serving.index.rows import Snapshot
from tests.support.contextual import make_slot_routes
from tests.support.rows import a_placement_row, a_site_row, an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SITE = SiteId(an_id(100))
OTHER = SiteId(an_id(101))


class FakeTables:
    """The pages of sites that are in memory."""

    def __init__(self, tables: dict[SiteId, PageTable]) -> None:
        self._tables = tables

    def find(self, site_id: SiteId) -> PageTable | None:
        return self._tables.get(site_id)


def a_slot(slug: str, number: int, **fields: Any) -> Any:
    return a_placement_row(
        key=number,
        id=PlacementId(an_id(number)),
        slug=slug,
        **({"delivery": Delivery.CONTEXTUAL, "site_key": 1} | fields),
    )


def snapshot(**site: Any) -> Snapshot:
    return Snapshot(
        version=1,
        placements=[
            a_slot("top", 1),
            a_slot("side", 2),
            a_slot("direct", 3, delivery=Delivery.DIRECT),
            a_slot("off", 4, is_active=False),
            a_slot("elsewhere", 5, site_key=2),
        ],
        assignments=[],
        banner_ids=[],
        campaign_ids=[],
        sites=[
            a_site_row(
                **({"key": 1, "id": SITE, "domain": "example.com", "verified_host": "example.com"} | site)
            ),
            a_site_row(key=2, id=OTHER, domain="other.example"),
        ],
    )


def ask(
    *slots: str,
    url: str = "https://www.example.com/bread?utm_source=x",
    table: PageTable | None = NO_PAGES,
    recent: RecentTexts | None = None,
    **site: Any,
) -> dict[str, Any]:
    index = compile_index(snapshot(**site))
    tables = FakeTables({} if table is None else {SITE: table})
    routes = make_slot_routes(index, tables, recent=recent)
    body = json.dumps({"url": url, "slots": slots}).encode()
    answer = routes.serve_batch(FastRequest(b"POST", b"/v1/serve/batch", body=body))
    assert isinstance(answer, FastAnswer)
    return json.loads(answer.body)


def classified(at: datetime) -> PageTable:
    return NO_PAGES.with_changes([PageEntry("example.com/bread", 1, (), at, compute_expiry(at))])


def test_requests_are_counted_by_slot_and_page_once_the_page_is_classified() -> None:
    counted: list[tuple[int, str, bool]] = []

    def count(placement_key: int, url: str, *, is_filled: bool) -> None:
        counted.append((placement_key, url, is_filled))

    body = json.dumps({"url": "https://example.com/bread?utm_source=x", "slots": ["top", "side"]}).encode()
    for table in (NO_PAGES, classified(NOON)):
        routes = make_slot_routes(compile_index(snapshot()), FakeTables({SITE: table}), count_page=count)
        routes.serve_batch(FastRequest(b"POST", b"/v1/serve/batch", body=body))

    assert [(url, is_filled) for _, url, is_filled in counted] == [("example.com/bread", False)] * 2
    assert len({placement_key for placement_key, _, _ in counted}) == 2


def test_a_page_that_nobody_knows_is_asked_for_its_text() -> None:
    answer = ask("top", "side", "top")

    assert (answer["page"], answer["reclassifyInMs"]) == ("unknown", 0)
    assert answer["slots"] == {"top": None, "side": None}
    assert answer["servedAt"] == "2026-11-15T12:00:00.000Z"
    assert len(answer["requestId"]) == 36


def test_a_known_page_is_asked_again_when_it_expires() -> None:
    answer = ask("top", table=classified(NOON - timedelta(hours=47)))

    assert (answer["page"], answer["reclassifyInMs"]) == ("known", 3_600_000)


def test_a_stale_page_is_asked_for_its_text() -> None:
    answer = ask("top", table=classified(NOON - timedelta(hours=49)))

    assert (answer["page"], answer["reclassifyInMs"]) == ("stale", -3_600_000)


def test_a_page_of_a_site_that_is_not_in_memory_yet_is_unknown() -> None:
    assert ask("top", table=None)["page"] == "unknown"


def test_no_text_is_asked_for_where_none_would_be_taken() -> None:
    assert ask("top", verified_host=None)["reclassifyInMs"] > 0


def test_no_second_reader_is_asked_while_a_text_is_being_classified() -> None:
    recent = RecentTexts()
    recent.add(SITE, "example.com/bread", NOON - timedelta(seconds=10))

    assert ask("top", recent=recent)["reclassifyInMs"] == 20_000


@pytest.mark.parametrize("slug", ["nowhere", "direct", "off"])
def test_a_slot_that_is_not_there_is_a_problem_of_its_own(slug: str) -> None:
    slots = ask("top", slug)["slots"]

    assert slots["top"] is None
    assert (slots[slug]["status"], slots[slug]["errorCode"]) == (404, "PLACEMENT_NOT_FOUND")


def test_a_slot_of_another_site_is_a_problem_of_its_own() -> None:
    slots = ask("top", "elsewhere")["slots"]

    assert (slots["top"], slots["elsewhere"]["errorCode"]) == (None, "SITE_HOST_MISMATCH")


def test_a_page_of_no_site_of_its_slots_is_refused() -> None:
    with pytest.raises(SiteHostMismatchError):
        ask("top", url="https://elsewhere.test/bread")


def test_without_any_slot_that_is_there_the_page_is_unknown() -> None:
    answer = ask("nowhere")

    assert answer["page"] == "unknown"
    assert answer["reclassifyInMs"] > 0


@pytest.mark.parametrize(
    ("slots", "url", "field"),
    [
        ([], "https://example.com/", "slots"),
        (["top"] * 21, "https://example.com/", "slots"),
        (["x" * 101], "https://example.com/", "slots[0]"),
        (["top"], "nonsense", "url"),
    ],
)
def test_a_wrong_field_is_named(slots: list[str], url: str, field: str) -> None:
    with pytest.raises(ValidationFailedError) as error:
        ask(*slots, url=url)

    assert [one.field for one in error.value.errors] == [field]
