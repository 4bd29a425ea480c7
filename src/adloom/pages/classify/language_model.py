"""Classifies by a language model; by the package itself where that is away, too busy or answers nonsense."""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import httpx
import msgspec
import structlog

from adloom.pages.classify.model_questions import (
    CHOSEN_ROOTS_MAX,
    PROMPT_VERSION,
    ModelAnswerError,
    ModelRequest,
    ProviderApi,
    build_question,
    combine,
    read_answer,
    read_text,
)
from adloom.pages.classify.protocol import Classification, Classifier, PageContent
from adloom.pages.model import CATEGORIES_MAX, PageCategory
from adloom.taxonomy.iab import load_content

FAILURES_MAX: Final = 5
OPEN_SECONDS: Final = 30.0
BURST: Final = 5


class ModelRequestBucket:
    """So many requests a minute, and a few at once."""

    def __init__(self, per_minute: int, *, burst: int = BURST) -> None:
        self._per_second = per_minute / 60
        self._size = float(max(burst, 2))
        self._tokens = self._size
        self._at: float | None = None

    def take(self, count: int, now: float) -> bool:
        if self._at is not None:
            self._tokens = min(self._size, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        if self._tokens < count:
            return False
        self._tokens -= count
        return True


class CircuitBreaker:
    """Opens after 5 failures in a row; after 30 seconds it lets one request try."""

    def __init__(self) -> None:
        self._failures = 0
        self._open_until = 0.0

    def may_ask(self, now: float) -> bool:
        return self._failures < FAILURES_MAX or now >= self._open_until

    def note(self, now: float, *, is_success: bool) -> None:
        if is_success:
            self._failures = 0
            return
        self._failures += 1
        if self._failures >= FAILURES_MAX:
            self._open_until = now + OPEN_SECONDS


CALL_SECONDS_MAX: Final = 15.0
ATTEMPTS_MAX: Final = 3
BACKOFF_SECONDS: Final = 0.5
RETRY_AFTER_SECONDS_MAX: Final = 10.0
ANSWER_BYTES_MAX: Final = 256 * 2**10
REQUESTS_A_PAGE: Final = 2
TOO_MANY: Final = 429
SERVER_ERROR: Final = 500

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class ModelAwayError(Exception):
    """A provider did not answer as it should; the message names the reason, never the page."""


class ModelCounts(msgspec.Struct):
    """How often the model was asked and answered, and how often the package classified in its place."""

    answered: int = 0
    failed: int = 0
    replaced: int = 0


class LanguageModelClassifier:
    """Asks twice: for roots, then for the nodes below them."""

    def __init__(  # noqa: PLR0913 - what it works with
        self,
        http: httpx.AsyncClient,
        api: ProviderApi,
        *,
        key: str,
        model: str | None = None,
        url: str | None = None,
        fallback: Callable[[], Awaitable[Classifier]],
        requests_per_minute: int = 8,
        call_seconds_max: float = CALL_SECONDS_MAX,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.name = api.name
        self._model = model or api.model
        self.version = f"{self._model}-{PROMPT_VERSION}"[:50]
        self.counts = ModelCounts()
        self._http = http
        self._api = api
        self._key = key
        self._url = url or api.url
        self._load_fallback = fallback
        self._fallback: Classifier | None = None
        self._bucket = ModelRequestBucket(requests_per_minute)
        self._breaker = CircuitBreaker()
        self._call_seconds_max = call_seconds_max
        self._sleep = sleep
        self._clock = clock or asyncio.get_running_loop().time
        self._roots = {node.id: node.name for node in load_content() if node.parent_id is None}

    async def classify(self, page: PageContent, *, ids_max: int = CATEGORIES_MAX) -> Classification:
        now = self._clock()
        if self._breaker.may_ask(now) and self._bucket.take(REQUESTS_A_PAGE, now):
            try:
                categories = await self._ask_twice(page, ids_max)
            except (ModelAwayError, ModelAnswerError) as error:
                self.counts.failed += 1
                self._breaker.note(self._clock(), is_success=False)
                log.warning("language_model_failed", provider=self.name, reason=str(error))
            else:
                self.counts.answered += 1
                self._breaker.note(self._clock(), is_success=True)
                return Classification(categories)
        self.counts.replaced += 1
        if self._fallback is None:
            self._fallback = await self._load_fallback()
        found = await self._fallback.classify(page, ids_max=ids_max)
        return Classification(
            found.categories, found.evidence, by=(self._fallback.name, self._fallback.version)
        )

    async def _ask_twice(self, page: PageContent, ids_max: int) -> tuple[PageCategory, ...]:
        roots = await self._ask(page, self._roots, most=CHOSEN_ROOTS_MAX)
        below = {
            node_id: " > ".join(load_content().find_path(node_id)[1:])
            for root in roots
            for node_id in sorted(load_content().list_descendants(root.id))
        }
        nodes = await self._ask(page, below, most=CHOSEN_ROOTS_MAX) if below else []
        root_of = {node_id: load_content().list_ancestors(node_id)[-1] for node_id in below}
        return combine(roots, nodes, root_of, ids_max=ids_max)

    async def _ask(self, page: PageContent, names: Mapping[str, str], *, most: int) -> list[PageCategory]:
        system, question = build_question(page, names, most=most)
        request = self._api.build(self._model, self._key, system, question)
        try:
            async with asyncio.timeout(self._call_seconds_max):
                body = await self._send(request)
        except TimeoutError as error:
            raise ModelAwayError(f"no answer within {self._call_seconds_max:g} s") from error
        return read_answer(read_text(self._api, body), names, most=most)

    async def _send(self, request: ModelRequest) -> bytes:
        """Send, again after 429 and 5xx; any other refusal is final."""
        reason = ""
        for attempt in range(ATTEMPTS_MAX):
            wait_seconds = BACKOFF_SECONDS * 2**attempt
            try:
                async with self._http.stream(
                    "POST",
                    f"{self._url}{request.path}",
                    headers={**request.headers, "content-type": "application/json"},
                    content=request.body,
                ) as answer:
                    if answer.is_success:
                        return await _read_bounded(answer)
                    reason = f"HTTP {answer.status_code}"
                    if answer.status_code == TOO_MANY:
                        wait_seconds = _read_retry_after(answer.headers.get("retry-after"), wait_seconds)
                    elif answer.status_code < SERVER_ERROR:
                        raise ModelAwayError(reason)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                reason = type(error).__name__
            if attempt + 1 < ATTEMPTS_MAX:
                await self._sleep(wait_seconds)
        raise ModelAwayError(reason)


@asynccontextmanager
async def open_model_client() -> AsyncGenerator[httpx.AsyncClient]:
    """Open a client that follows no redirects: the key goes to the provider and nowhere else."""
    async with httpx.AsyncClient(timeout=CALL_SECONDS_MAX, follow_redirects=False) as client:
        yield client


async def _read_bounded(answer: httpx.Response) -> bytes:
    body = bytearray()
    async for piece in answer.aiter_bytes():
        body += piece
        if len(body) > ANSWER_BYTES_MAX:
            raise ModelAwayError("the answer is too long")
    return bytes(body)


def _read_retry_after(text: str | None, otherwise: float) -> float:
    try:
        seconds = float(text or "")
    except ValueError:
        return otherwise
    if not math.isfinite(seconds):
        return otherwise
    if seconds > RETRY_AFTER_SECONDS_MAX:
        raise ModelAwayError(f"HTTP {TOO_MANY}, to be asked again after {seconds:.0f} s")
    return max(seconds, 0.0)
