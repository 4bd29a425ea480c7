"""A request that the ASGI app answers, in uvicorn's terms."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.runtime.http.fast.fixed_headers import Headers
from adloom.runtime.http.fast.request_parser import build_scope


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
