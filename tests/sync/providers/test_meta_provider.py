"""Statistics from a server with Meta's API, with and without errors."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from adloom.runtime.settings import Secret
from adloom.runtime.valkey import Valkey, make_client
from adloom.sync.figures import compute_ratios
from adloom.sync.providers.http_client import RequestPace, open_http_client
from adloom.sync.providers.meta import MetaProvider
from adloom.sync.providers.protocol import (
    CredentialsExpiredError,
    ProviderError,
    ProviderRefusedError,
    ProviderUnavailableError,
    StatRow,
    StatsRequest,
    ThrottledError,
)
from adloom.sync.words import Level, Platform, Semantics
from tests.support.for_each import for_each
from tests.sync.builders import DAY, a_request, an_account, an_entity
from tests.sync.providers.meta_server import TOKEN, MetaServer, Scripted, days, running_meta


@pytest.fixture
def meta() -> Iterator[MetaServer]:
    with running_meta() as server:
        yield server


@pytest.fixture
async def provider(meta: MetaServer) -> AsyncIterator[MetaProvider]:
    async with open_http_client() as http:
        yield MetaProvider(http, url=f"{meta.url}/v23.0", requests_per_second=1_000)


def a_meta_request(**given: Any) -> StatsRequest:
    account = an_account(platform=Platform.META, external_id="act_77", credentials=Secret(TOKEN))
    fields: dict[str, Any] = {"account": account, "entities": [an_entity(external_id="c1")]}
    return a_request(**(fields | given))


async def fetched(provider: MetaProvider, request: StatsRequest) -> list[StatRow]:
    return [row async for page in provider.fetch(request) for row in page]


async def test_a_row_is_read_with_its_actions(meta: MetaServer, provider: MetaProvider) -> None:
    meta.has(
        "campaign",
        "c1",
        DAY,
        spend="123.45",
        impressions="10000",
        inline_link_clicks="200",
        actions=[
            {"action_type": "link_click", "value": "210"},
            {"action_type": "omni_view_content", "value": "140"},
            {"action_type": "view_content", "value": "99"},
            {"action_type": "offsite_conversion.fb_pixel_add_to_cart", "value": "17"},
            {"action_type": "initiate_checkout", "value": "9"},
            {"action_type": "purchase", "value": "4"},
            {"action_type": "offsite_conversion.fb_pixel_purchase", "value": "4"},
        ],
        action_values=[{"action_type": "purchase", "value": "301.555"}],
    )
    request = a_meta_request()

    (row,) = await fetched(provider, request)

    figures = row.figures
    assert row.entity_id == request.entities[0].id
    assert (row.external_entity_id, row.date_start, row.date_stop) == ("c1", DAY, DAY)
    assert (figures.spend, figures.impressions, figures.link_clicks) == (Decimal("123.45"), 10_000, 200)
    assert (figures.content_views, figures.add_to_cart, figures.checkout_initiated) == (140, 17, 9)
    assert (figures.purchases, figures.purchase_value) == (4, Decimal("301.56"))
    assert compute_ratios(row.figures).cpm == Decimal("12.3450")
    assert provider.semantics is Semantics.SNAPSHOT


@pytest.mark.parametrize("level", list(Level))
async def test_each_level_is_requested_by_its_name_day_by_day(
    meta: MetaServer, provider: MetaProvider, level: Level
) -> None:
    name = level.value.lower()
    for day in days(DAY, 3):
        meta.has(name, "c1", day, spend="1.00")
    request = a_meta_request(level=level, first=DAY, last=DAY + timedelta(days=1))

    rows = await fetched(provider, request)

    (asked,) = meta.requests
    assert [row.date_start for row in rows] == days(DAY, 2)
    assert (asked["path"], asked["level"], asked["time_increment"]) == ("/v23.0/act_77/insights", name, "1")
    assert f"{name}_id" in asked["fields"].split(",")


@pytest.mark.parametrize("level", list(Level))
async def test_what_was_deleted_or_archived_at_meta_is_reported(
    meta: MetaServer, provider: MetaProvider, level: Level
) -> None:
    statuses = ("ACTIVE", "PAUSED", "ARCHIVED", "DELETED", "WITH_ISSUES")
    entities = [an_entity(external_id=status.lower()) for status in statuses]
    for status in statuses:
        meta.has(level.value.lower(), status.lower(), DAY, status=status, spend="1.00")

    rows = await fetched(provider, a_meta_request(level=level, entities=entities))

    assert [row.external_entity_id for row in rows] == [status.lower() for status in statuses]


async def test_a_page_that_names_a_next_one_without_its_cursor_is_an_error(
    meta: MetaServer, provider: MetaProvider
) -> None:
    body = b'{"data": [], "paging": {"next": "https://graph.facebook.com/next"}}'
    meta.script.append(Scripted(200, body=body))

    with pytest.raises(ProviderUnavailableError, match="cursor"):
        await fetched(provider, a_meta_request())


async def test_pages_are_followed_by_cursor_and_not_by_the_url_with_the_token(
    meta: MetaServer, provider: MetaProvider
) -> None:
    entities = [an_entity(external_id=f"c{number}") for number in range(1_200)]
    for entity in entities:
        meta.has("campaign", entity.external_id or "", DAY, impressions="1")

    rows = await fetched(provider, a_meta_request(entities=entities))

    assert len({row.entity_id for row in rows}) == 1_200
    assert [one.get("after") for one in meta.requests] == [None, "500", "1000"]
    assert not any("access_token" in one for one in meta.requests)


async def test_entities_unknown_here_are_left_out(meta: MetaServer, provider: MetaProvider) -> None:
    meta.has("campaign", "unknown", DAY, spend="9.99")

    assert await fetched(provider, a_meta_request()) == []


async def test_figures_of_another_currency_are_refused(meta: MetaServer, provider: MetaProvider) -> None:
    meta.has("campaign", "c1", DAY, spend="9.99", account_currency="EUR")

    with pytest.raises(ProviderRefusedError, match="Meta reports in EUR, but the account here is in USD"):
        await fetched(provider, a_meta_request())


async def test_nothing_is_requested_without_linked_entities(meta: MetaServer, provider: MetaProvider) -> None:
    assert await fetched(provider, a_meta_request(entities=[an_entity(external_id=None)])) == []
    assert meta.requests == []


async def test_the_number_of_pages_followed_is_limited(meta: MetaServer) -> None:
    for number in range(2_000):
        meta.has("campaign", f"c{number}", DAY)
    async with open_http_client() as http:
        provider = MetaProvider(http, url=meta.url, requests_per_second=1_000, pages_max=3)

        with pytest.raises(ProviderRefusedError, match="more than 3 pages"):
            await fetched(provider, a_meta_request())

    assert len(meta.requests) == 3


async def test_pages_that_go_round_in_a_circle_are_an_outage(
    meta: MetaServer, provider: MetaProvider
) -> None:
    for after in ("b", "c", "b", "c"):
        paging = {"cursors": {"after": after}, "next": "https://graph.facebook.com/next"}
        meta.script.append(Scripted(200, body=b'{"data": [], "paging": %s}' % json.dumps(paging).encode()))

    with pytest.raises(ProviderUnavailableError, match="repeatedly"):
        await fetched(provider, a_meta_request())

    assert [one.get("after") for one in meta.requests] == [None, "b", "c"]


async def test_a_too_large_page_is_requested_in_smaller_ones(
    meta: MetaServer, provider: MetaProvider
) -> None:
    meta.rows_max = 130
    for number in range(300):
        meta.has("campaign", f"c{number}", DAY)

    rows = await fetched(
        provider, a_meta_request(entities=[an_entity(external_id=f"c{n}") for n in range(300)])
    )

    assert len(rows) == 300
    assert [one["limit"] for one in meta.requests] == ["500", "250", "125", "125", "125"]


@for_each(
    ("status", "error", "expected"),
    [
        (400, {"code": 190, "error_subcode": 463}, CredentialsExpiredError),
        (401, {"code": 102}, CredentialsExpiredError),
        (403, {"code": 200}, CredentialsExpiredError),
        (403, {"code": 10}, CredentialsExpiredError),
        (400, {"code": 4}, ThrottledError),
        (400, {"code": 17}, ThrottledError),
        (400, {"code": 32}, ThrottledError),
        (400, {"code": 613}, ThrottledError),
        (400, {"code": 80000}, ThrottledError),
        (429, {}, ThrottledError),
        (500, {"code": 1}, ProviderUnavailableError),
        (503, {"code": 2}, ProviderUnavailableError),
        (400, {"code": 9999, "is_transient": True}, ProviderUnavailableError),
        (502, None, ProviderUnavailableError),
        (400, {"code": 100, "error_subcode": 33}, ProviderRefusedError),
    ],
)
async def test_each_error_of_meta_is_mapped(
    meta: MetaServer,
    provider: MetaProvider,
    status: int,
    error: dict[str, Any] | None,
    expected: type[ProviderError],
) -> None:
    meta.script.append(Scripted(status, error, body=b"<html>" if error is None else None))
    # A throttled one is not asked again.
    number = f"{status}{(error or {}).get('code', 0)}"
    account = an_account(platform=Platform.META, external_id=number, credentials=Secret(TOKEN))

    with pytest.raises(ProviderError) as raised:
        await fetched(provider, a_meta_request(account=account))

    assert type(raised.value) is expected


async def test_no_error_contains_the_token(meta: MetaServer, provider: MetaProvider) -> None:
    account = an_account(platform=Platform.META, external_id="77", credentials=Secret("another-secret-token"))

    with pytest.raises(CredentialsExpiredError) as raised:
        await fetched(provider, a_meta_request(account=account))

    assert meta.tokens == ["another-secret-token"]
    assert "another-secret-token" not in str(raised.value)
    assert "another-secret-token" not in repr(account)


async def test_a_throttled_answer_says_when_to_retry(meta: MetaServer, provider: MetaProvider) -> None:
    usage = {"77": [{"type": "ads_insights", "call_count": 100, "estimated_time_to_regain_access": 19}]}
    meta.script.append(Scripted(400, {"code": 80000}, X_Business_Use_Case_Usage=usage))

    with pytest.raises(ThrottledError) as raised:
        await fetched(provider, a_meta_request())

    assert raised.value.retry_after == timedelta(minutes=19)


async def test_a_time_to_retry_beyond_all_bounds_is_a_day(meta: MetaServer, provider: MetaProvider) -> None:
    usage = {"77": [{"estimated_time_to_regain_access": 10**18}]}
    meta.script.append(Scripted(400, {"code": 80000}, X_Business_Use_Case_Usage=usage))

    with pytest.raises(ThrottledError) as raised:
        await fetched(provider, a_meta_request())

    assert raised.value.retry_after == timedelta(days=1)


async def test_a_throttled_account_is_not_asked_before_its_time(meta: MetaServer) -> None:
    now = 7.0
    usage = {"77": [{"estimated_time_to_regain_access": 19}]}
    meta.script.append(Scripted(400, {"code": 80000}, X_Business_Use_Case_Usage=usage))
    other = an_account(platform=Platform.META, external_id="act_78", credentials=Secret(TOKEN))

    async with open_http_client() as http:
        provider = MetaProvider(http, url=meta.url, pace=lambda rate: RequestPace(rate, moment=lambda: now))
        with pytest.raises(ThrottledError):
            await fetched(provider, a_meta_request())
        now += 60
        with pytest.raises(ThrottledError) as raised:
            await fetched(provider, a_meta_request(level=Level.AD))
        await fetched(provider, a_meta_request(account=other))
        now += 18 * 60
        await fetched(provider, a_meta_request())

    assert raised.value.retry_after == timedelta(minutes=18)
    assert [one["path"] for one in meta.requests] == [f"/act_{n}/insights" for n in (77, 78, 77)]


async def test_what_one_worker_learns_of_a_rate_limit_holds_for_all(meta: MetaServer, valkey: Valkey) -> None:
    def remember(with_valkey: Valkey) -> Callable[[float], RequestPace]:
        return lambda rate: RequestPace(rate, valkey=with_valkey)

    usage = {"77": [{"estimated_time_to_regain_access": 19}]}
    away = make_client("redis://127.0.0.1:9")
    async with open_http_client() as http, aclosing(away):
        asked, other, alone = (
            MetaProvider(http, url=meta.url, pace=remember(one)) for one in (valkey, valkey, away)
        )
        for provider in (asked, alone):
            meta.script.append(Scripted(400, {"code": 80000}, X_Business_Use_Case_Usage=usage))
            with pytest.raises(ThrottledError):
                await fetched(provider, a_meta_request())
            with pytest.raises(ThrottledError):
                await fetched(provider, a_meta_request())
        with pytest.raises(ThrottledError) as raised:
            await fetched(other, a_meta_request(level=Level.AD))
        assert len(meta.requests) == 2
        await valkey.flushall()
        await fetched(other, a_meta_request())

    assert timedelta(minutes=18) < raised.value.retry_after <= timedelta(minutes=19)
    assert len(meta.requests) == 3


async def test_requests_stop_before_the_usage_limit_is_reached(
    meta: MetaServer, provider: MetaProvider
) -> None:
    for number in range(600):
        meta.has("campaign", f"c{number}", DAY, spend="1")
    meta.usage["X-Ad-Account-Usage"] = {"acc_id_util_pct": 96.5}
    rows: list[StatRow] = []

    with pytest.raises(ThrottledError):
        async for page in provider.fetch(a_meta_request()):
            rows += page

    assert len(meta.requests) == 1


async def test_requests_slow_down_near_the_usage_limit(meta: MetaServer) -> None:
    slept: list[float] = []
    for number in range(1_100):
        meta.has("campaign", f"c{number}", DAY)
    meta.usage["X-Business-Use-Case-Usage"] = {"77": [{"total_cputime": 85}]}

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async with open_http_client() as http:
        provider = MetaProvider(
            http, url=meta.url, pace=lambda rate: RequestPace(rate, sleep=sleep, moment=lambda: 7.0)
        )
        await fetched(provider, a_meta_request())

    assert [round(seconds) for seconds in slept] == [10, 10]


async def test_requests_of_an_account_are_spaced_apart() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 3))

    pace = RequestPace(5, sleep=sleep, moment=lambda: 100.0)
    for account in ("one", "one", "other", "one"):
        await pace.wait(account)

    assert slept == [0.2, 0.4]


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b'{"data": [{"date_start": "2026-02-19", "date_stop": "2026-02-19"}]}',
        b'{"data": [{"campaign_id": "c1", "date_start": "2026-02-19", "date_stop": "2026-02-19", "spend": "-1"}]}',
        b'{"data": [{"campaign_id": "c1", "date_start": "2026-02-19", "date_stop": "2026-02-19", "spend": "NaN"}]}',
        b'{"data": [{"campaign_id": "c1", "date_start": "2026-02-19", "date_stop": "2026-02-19", "spend": "1e13"}]}',
        b'{"data": [{"campaign_id": "c1", "date_start": "2026-02-19", "date_stop": "2026-02-19", "impressions": "1e999999"}]}',
        b'{"data": [{"campaign_id": "c1", "date_start": "yesterday", "date_stop": "2026-02-19"}]}',
        b'{"data": [{"campaign_id": "c1", "date_start": "2026-02-18", "date_stop": "2026-02-18"}]}',
        b'{"data": [{"campaign_id": "c1", "date_start": "2026-02-20", "date_stop": "2026-02-20"}]}',
        b'{"data": [{"campaign_id": "c1", "date_start": "2026-02-19", "date_stop": "2026-02-20"}]}',
    ],
)
async def test_an_unreadable_answer_is_an_outage(
    meta: MetaServer, provider: MetaProvider, body: bytes
) -> None:
    meta.script.append(Scripted(200, body=body))

    with pytest.raises(ProviderUnavailableError):
        await fetched(provider, a_meta_request())


async def test_a_platform_that_is_away_is_an_outage() -> None:
    async with open_http_client() as http:
        provider = MetaProvider(http, url="http://127.0.0.1:9")

        with pytest.raises(ProviderUnavailableError, match="cannot be reached"):
            await fetched(provider, a_meta_request())


async def test_an_account_without_a_token_must_be_connected(provider: MetaProvider) -> None:
    with pytest.raises(CredentialsExpiredError, match="Connect"):
        await fetched(provider, a_meta_request(account=an_account(platform=Platform.META, credentials=None)))


@pytest.mark.parametrize("token", ["EAAB…", "EAAB\n", "EA AB"])
async def test_a_token_that_is_none_must_be_replaced(
    meta: MetaServer, provider: MetaProvider, token: str
) -> None:
    account = an_account(platform=Platform.META, external_id="77", credentials=Secret(token))

    with pytest.raises(CredentialsExpiredError, match="Connect the account again"):
        await fetched(provider, a_meta_request(account=account))

    assert meta.requests == []


@pytest.mark.parametrize("external_id", ["../me", "act_1/../2", "12?x=1", "act_", "act_act_1", "1 2"])
async def test_an_external_id_that_is_no_account_number_is_refused(
    provider: MetaProvider, external_id: str
) -> None:
    account = an_account(platform=Platform.META, external_id=external_id)

    with pytest.raises(ProviderRefusedError, match="no ad account of Meta"):
        await fetched(provider, a_meta_request(account=account))


async def test_an_account_without_its_external_id_is_refused(provider: MetaProvider) -> None:
    account = an_account(platform=Platform.META, external_id=None)

    with pytest.raises(ProviderRefusedError, match="externalId"):
        await fetched(provider, a_meta_request(account=account))
