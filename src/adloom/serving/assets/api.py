"""Serves uploaded files: any part of them, in pieces, as fast as the client reads."""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from http import HTTPStatus
from typing import Final

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from adloom.core.errors import AdloomError, MethodNotAllowedError, NotFoundError, UnavailableError
from adloom.core.public_paths import FILES, name_neutrally
from adloom.runtime.files.store import FilesAwayError, FileStore, OpenFile
from adloom.runtime.http.fast.fast_routes import index_headers
from adloom.runtime.http.problem import PROBLEM_CONTENT_TYPE, encode_problem
from adloom.serving.assets.answer import (
    FileAddress,
    Headers,
    build_headers,
    matches_etag,
    parse_address,
    parse_range,
)

READ: Final = frozenset({"GET", "HEAD"})
NOTHING_HERE: Final = NotFoundError("There is no file at this address.")
STORE_AWAY: Final = UnavailableError("The store of files does not answer. Try again in a moment.")

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class AssetApp:
    """Answers below `/p/`, also by its neutral name; another app answers everything else."""

    def __init__(self, files: FileStore, other: ASGIApp, public_url: str, prefix: str = "") -> None:
        self._files = files
        self._other = other
        self._folders = tuple(dict.fromkeys((FILES, name_neutrally(FILES, prefix))))
        self._public_url = public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        folder = next((one for one in self._folders if path.startswith(one)), None)
        if folder is None:
            await self._other(scope, receive, send)
            return
        if scope["method"] not in READ:
            await _send_problem(
                send, MethodNotAllowedError("This address takes GET."), ((b"allow", b"GET, HEAD"),)
            )
            return
        address = parse_address(path[len(folder) :])
        if address is None:
            await _send_problem(send, NOTHING_HERE)
            return
        await self._answer(scope, send, address, files_url=f"{self._public_url}{folder}")

    async def _answer(self, scope: Scope, send: Send, address: FileAddress, *, files_url: str) -> None:
        given = index_headers(scope["headers"])
        headers = build_headers(address, files_url=files_url)
        if matches_etag(given.get(b"if-none-match"), address.etag):
            # The bytes of an address never change.
            await _send(send, HTTPStatus.NOT_MODIFIED, headers)
            return
        is_begun = False
        try:
            async with self._files.open(address.key) as file:
                if file is None:
                    await _send_problem(send, NOTHING_HERE)
                    return
                is_begun = True
                await _send_file(scope["method"], send, file, headers, given)
        except FilesAwayError as error:
            log.warning("files_away", error=str(error))
            if is_begun:
                raise
            await _send_problem(send, STORE_AWAY)


async def _send_file(
    method: str, send: Send, file: OpenFile, headers: Headers, given: dict[bytes, bytes]
) -> None:
    size, status = file.size, HTTPStatus.OK
    etag = dict(headers)[b"etag"]
    # A part of another version would not fit the parts that the client has.
    wanted = given.get(b"range") if given.get(b"if-range", etag) == etag else None
    try:
        part = parse_range(wanted, size)
    except ValueError:
        refused = [*headers, (b"content-range", b"bytes */%d" % size), (b"content-length", b"0")]
        await _send(send, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, refused)
        return
    first, count = (0, size) if part is None else (part.first, part.count)
    if part is not None:
        status = HTTPStatus.PARTIAL_CONTENT
        headers = [*headers, (b"content-range", b"bytes %d-%d/%d" % (part.first, part.last, size))]
    headers = [*headers, (b"content-length", b"%d" % count)]
    if method == "HEAD":
        await _send(send, status, headers)
        return
    await send({"type": "http.response.start", "status": status, "headers": headers})
    async with contextlib.aclosing(_read_pieces(file, first, count)) as pieces:
        async for data in pieces:
            await send({"type": "http.response.body", "body": data, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _read_pieces(file: OpenFile, first: int, count: int) -> AsyncGenerator[bytes]:
    if count:
        async with contextlib.aclosing(file.read(first, count)) as reading:
            async for data in reading:
                yield data


async def _send(send: Send, status: HTTPStatus, headers: Headers) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _send_problem(send: Send, error: AdloomError, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    body = encode_problem(error)
    found = [
        (b"content-type", PROBLEM_CONTENT_TYPE.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        (b"access-control-allow-origin", b"*"),
        *headers,
    ]
    await send({"type": "http.response.start", "status": error.status, "headers": found})
    await send({"type": "http.response.body", "body": body})
