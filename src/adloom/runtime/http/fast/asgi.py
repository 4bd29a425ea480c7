"""A whole request as uvicorn's ASGI cycle takes it."""

from urllib.parse import unquote

from uvicorn._types import HTTPScope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adloom.runtime.http.fast.fast_routes import FastRequest


def scope_of(request: FastRequest, connection: HttpToolsProtocol) -> HTTPScope:
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
        "headers": request.headers,
        "client": connection.client,
        "server": connection.server,
        "state": connection.app_state.copy(),
    }
