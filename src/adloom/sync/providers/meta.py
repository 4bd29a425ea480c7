"""Statistics from Meta's Insights API: one query per account and level, with daily rows, page by page."""

from collections.abc import AsyncIterator, Callable, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from adloom.runtime.settings import Secret
from adloom.sync.providers.http_client import HttpGetter, MetaAnswer, RequestPace
from adloom.sync.providers.meta_answers import (
    LEVEL_NAMES,
    InsightPage,
    MetaUsage,
    TooMuchDataError,
    list_fields,
    parse_error,
    parse_rows,
    parse_usage,
)
from adloom.sync.providers.protocol import (
    AccountLink,
    CredentialsExpiredError,
    ProviderRefusedError,
    ProviderUnavailableError,
    StatRow,
    StatsRequest,
    ThrottledError,
)
from adloom.sync.words import ACCESS_TOKEN, META_ACCOUNT, Platform, Semantics

META_URL: Final = "https://graph.facebook.com/v23.0"
REQUESTS_PER_SECOND: Final = 5.0
PAGE_ROWS: Final = 500
PAGE_ROWS_MIN: Final = 25
# A week of 50,000 ads. Paging without end must not block a job for ever.
PAGES_MAX: Final = 1_000
ACCOUNT_PREFIX: Final = "act_"
# Unasked, Meta leaves out what was deleted or archived there, whose money is spent. It takes all of these on all levels.
STATUSES: Final = (
    *(
        "ACTIVE",
        "PAUSED",
        "ARCHIVED",
        "DELETED",
        "CAMPAIGN_PAUSED",
        "ADSET_PAUSED",
        "IN_PROCESS",
        "WITH_ISSUES",
    ),
    *("PENDING_REVIEW", "PENDING_BILLING_INFO", "PREAPPROVED", "DISAPPROVED"),
)


class MetaProvider:
    """Fetches statistics from Meta."""

    platform = Platform.META
    semantics = Semantics.SNAPSHOT

    def __init__(
        self,
        http: HttpGetter,
        *,
        url: str = META_URL,
        requests_per_second: float = REQUESTS_PER_SECOND,
        pages_max: int = PAGES_MAX,
        pace: Callable[[float], RequestPace] = RequestPace,
    ) -> None:
        self._http = http
        self._url = url.rstrip("/")
        self._pages_max = pages_max
        self._pace = pace(requests_per_second)

    async def fetch(self, request: StatsRequest) -> AsyncIterator[Sequence[StatRow]]:
        """Yield the rows of an account, a page at a time."""
        account, token = _check_connected(request)
        entities = {entity.external_id: entity for entity in request.entities if entity.external_id}
        if not entities:
            return
        query = _InsightQuery(request, account, token)
        after: str | None = None
        followed: set[str] = set()
        for _ in range(self._pages_max):
            page = await self._fetch_page(query, after)
            _check_currency(page, request.account)
            yield parse_rows(page.data, request.level, entities, first=request.first, last=request.last)
            if page.after is None:
                return
            if page.after in followed:
                raise ProviderUnavailableError("Meta returns the same page repeatedly.")
            after = page.after
            followed.add(after)
        raise ProviderRefusedError(f"Meta has more than {self._pages_max} pages; sync fewer days at once.")

    async def _fetch_page(self, query: "_InsightQuery", after: str | None) -> InsightPage:
        """Fetch a page; halve the page size while Meta finds it too large."""
        while True:
            try:
                return await self._request_page(query, after)
            except TooMuchDataError:
                if query.page_rows <= PAGE_ROWS_MIN:
                    raise
                query.page_rows = max(PAGE_ROWS_MIN, query.page_rows // 2)

    async def _request_page(self, query: "_InsightQuery", after: str | None) -> InsightPage:
        if pause := await self._pace.find_pause(query.account):
            raise ThrottledError("Meta's rate limit is reached; it is not asked yet.", retry_after=pause)
        await self._pace.wait(query.account)
        url = f"{self._url}/{query.account}/insights"
        answer = await self._http.get(url, query.build_parameters(after), query.token)
        usage = parse_usage(answer.headers)
        try:
            return self._read_page(query.account, answer, usage)
        except ThrottledError as error:
            # All levels of the account are throttled together, each in a job of its own.
            await self._pace.pause(query.account, error.retry_after)
            raise

    def _read_page(self, account: str, answer: MetaAnswer, usage: MetaUsage) -> InsightPage:
        if answer.status != HTTPStatus.OK:
            raise parse_error(answer.status, answer.body, usage)
        self._pace.delay_next(account, usage.rest)
        page = _decode(answer.body)
        if page.after is not None and usage.is_full:
            raise ThrottledError(
                f"{usage.percent:.0f} % of Meta's rate limit is used up.", retry_after=usage.retry_after
            )
        return page


class _InsightQuery:
    """One query, and its current page size."""

    def __init__(self, request: StatsRequest, account: str, token: Secret) -> None:
        self.account = account
        self.token = token
        self.page_rows = PAGE_ROWS
        self._request = request

    def build_parameters(self, after: str | None) -> dict[str, str]:
        level = LEVEL_NAMES[self._request.level]
        filters = [{"field": f"{level}.effective_status", "operator": "IN", "value": STATUSES}]
        days = {"since": self._request.first.isoformat(), "until": self._request.last.isoformat()}
        parameters = {
            "level": level,
            "filtering": msgspec.json.encode(filters).decode(),
            "time_increment": "1",
            "time_range": msgspec.json.encode(days).decode(),
            "fields": list_fields(self._request.level),
            "limit": str(self.page_rows),
        }
        return parameters if after is None else parameters | {"after": after}


def _check_connected(request: StatsRequest) -> tuple[str, Secret]:
    """Return Meta's account id and the access token."""
    if request.account.credentials is None:
        raise CredentialsExpiredError("The account has no access token yet. Connect it.")
    if not ACCESS_TOKEN.fullmatch(request.account.credentials):
        raise CredentialsExpiredError(
            "The access token has blanks or letters that no token has. Connect the account again."
        )
    external_id = request.account.external_id
    if not external_id:
        raise ProviderRefusedError("The account has no externalId, so Meta cannot be queried.")
    if not META_ACCOUNT.fullmatch(external_id):
        raise ProviderRefusedError(f"The externalId {external_id!r} is no ad account of Meta, like act_1234.")
    return ACCOUNT_PREFIX + external_id.removeprefix(ACCOUNT_PREFIX), request.account.credentials


def _check_currency(page: InsightPage, account: AccountLink) -> None:
    """Reject figures in another currency than the account's."""
    told = {insight.account_currency for insight in page.data} - {None, account.currency}
    if told:
        raise ProviderRefusedError(
            f"Meta reports in {min(str(one) for one in told)}, but the account here is in {account.currency}."
            " Create an account with Meta's currency."
        )


def _decode(body: bytes) -> InsightPage:
    try:
        return msgspec.json.decode(body, type=InsightPage)
    except msgspec.MsgspecError as error:
        raise ProviderUnavailableError(f"Meta's answer cannot be parsed: {error}.") from None
