"""Files in an S3-compatible store, over plain requests: write, read a part, delete."""

import contextlib
import hashlib
from collections.abc import AsyncGenerator, Sequence
from http import HTTPStatus
from typing import Final

import httpx
import msgspec

from adloom.core.clock import Clock
from adloom.runtime.files.signing import StoreKey, encode_path, sign_request
from adloom.runtime.files.store import FilesAwayError, OpenFile

EMPTY_SHA256: Final = hashlib.sha256(b"").hexdigest()
SECONDS_MAX: Final = 10.0
CONNECTIONS_MAX: Final = 20
ERROR_LENGTH_MAX: Final = 200
IMMUTABLE: Final = "public, max-age=31536000, immutable"


class StorePlace(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket, and what the keys of our files begin with; addresses have the bucket in their path."""

    origin: str
    bucket: str
    prefix: str
    key: StoreKey


class S3Store:
    """Files in a bucket."""

    def __init__(self, place: StorePlace, client: httpx.AsyncClient, clock: Clock) -> None:
        self._place = place
        self._client = client
        self._now = clock.now
        self._host = httpx.URL(place.origin).netloc.decode()

    async def write(self, key: str, data: bytes, content_type: str) -> None:
        headers = {"content-type": content_type, "cache-control": IMMUTABLE}
        async with self._send("PUT", key, data, headers) as answer:
            await _check(answer)

    @contextlib.asynccontextmanager
    async def open(self, key: str) -> AsyncGenerator[OpenFile | None]:
        async with self._send("HEAD", key) as answer:
            if answer.status_code == HTTPStatus.NOT_FOUND:
                yield None
                return
            await _check(answer)
            size = int(answer.headers["content-length"])
        yield _StoredObject(self, key, size)

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            async with self._send("DELETE", key) as answer:
                if answer.status_code != HTTPStatus.NOT_FOUND:
                    await _check(answer)

    async def read(self, key: str, first: int, count: int) -> AsyncGenerator[bytes]:
        headers = {"range": f"bytes={first}-{first + count - 1}"}
        async with self._send("GET", key, headers=headers) as answer:
            await _check(answer)
            async for data in answer.aiter_raw():
                yield data

    @contextlib.asynccontextmanager
    async def _send(
        self, method: str, key: str, data: bytes = b"", headers: dict[str, str] | None = None
    ) -> AsyncGenerator[httpx.Response]:
        place = self._place
        path = f"/{place.bucket}/{place.prefix}{key}"
        signed = sign_request(
            place.key,
            method=method,
            host=self._host,
            path=path,
            query={},
            headers=headers or {},
            payload_sha256=hashlib.sha256(data).hexdigest() if data else EMPTY_SHA256,
            now=self._now(),
        )
        try:
            async with self._client.stream(
                method, f"{place.origin}{encode_path(path)}", content=data or None, headers=signed
            ) as answer:
                yield answer
        except httpx.HTTPError as error:
            raise FilesAwayError(f"{place.origin} does not answer: {error!r}") from error


class _StoredObject:
    def __init__(self, store: S3Store, key: str, size: int) -> None:
        self._store = store
        self._key = key
        self.size = size

    def read(self, first: int, count: int) -> AsyncGenerator[bytes]:
        return self._store.read(self._key, first, count)


async def _check(answer: httpx.Response) -> None:
    if answer.is_error:
        said = (await answer.aread())[:ERROR_LENGTH_MAX].decode(errors="replace")
        raise FilesAwayError(f"{answer.url.host} answered {answer.status_code}: {said}")


@contextlib.asynccontextmanager
async def open_s3(place: StorePlace, clock: Clock) -> AsyncGenerator[S3Store]:
    limits = httpx.Limits(max_connections=CONNECTIONS_MAX)
    async with httpx.AsyncClient(timeout=SECONDS_MAX, limits=limits) as client:
        yield S3Store(place, client, clock)
