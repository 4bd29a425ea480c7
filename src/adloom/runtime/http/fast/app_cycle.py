"""A request that the ASGI app answers, in uvicorn's terms."""

import asyncio
from urllib.parse import unquote

from uvicorn._types import HTTPScope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from adloom.runtime.http.fast.fast_routes import FastRequest, list_headers
from adloom.runtime.http.fast.fixed_headers import Headers


def build_cycle(
    connection: HttpToolsProtocol, request: FastRequest, headers: Headers, *, stays_open: bool
) -> RequestResponseCycle:
    """Build what runs the app; it gets the whole body at once."""
    cycle = RequestResponseCycle(
        scope=build_scope(request, connection),
        transport=connection.transport,
        flow=connection.flow,
        logger=connection.logger,
        access_logger=connection.access_logger,
        access_log=connection.access_log,
        default_headers=headers,
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=stays_open,
        on_response=connection.on_response_complete,
    )
    cycle.body = bytearray(request.body)
    cycle.more_body = False
    cycle.message_event.set()
    return cycle


def build_scope(request: FastRequest, connection: HttpToolsProtocol) -> HTTPScope:
    raw_path = connection.root_path.encode("ascii") + request.path
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": request.version,
        "method": request.method.decode("ascii"),
        "scheme": connection.scheme or "http",
        "path": connection.root_path + unquote(request.path.decode("ascii")),
        "raw_path": raw_path,
        "query_string": request.query,
        "root_path": connection.root_path,
        "headers": list_headers(request),
        "client": connection.client,
        "server": connection.server,
        "state": connection.app_state.copy(),
    }
