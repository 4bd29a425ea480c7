"""The console on the control plane: NiceGUI behind its own addresses, everything else stays the API's.

NiceGUI is one application a process. It is set up once, and gets with each request the control plane that it serves.
"""

import functools
import importlib
import logging
import pkgutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import nicegui
from fastapi import FastAPI
from nicegui import ui
from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adloom.console import pages, theme
from adloom.console.client import ProblemError, SessionEndedError
from adloom.console.components.format import show_money_in
from adloom.console.components.status import show_files_of
from adloom.console.page import register_not_found
from adloom.console.sign_in import log_in, password_pages, second_factor_pages, single_sign_on_pages
from adloom.console.sign_in.gate import SessionGuard, make_log_in_url
from adloom.core.clock import Clock
from adloom.core.currency import NO_CURRENCY, Currency
from adloom.runtime.http.api.middleware import UPLOAD
from adloom.runtime.settings import TokenSettings

ADDRESSES: Final = ("/console", "/_nicegui/", "/_nicegui_ws/")
SOCKET: Final = "/_nicegui_ws/"
FILES: Final = "/_nicegui/"
KNOWN_FILES: Final = tuple(
    f"{FILES}{nicegui.__version__}/{folder}/"
    for folder in ("static", "libraries", "components", "resources", "dynamic_resources", "esm")
)
POLICY_VIOLATION: Final = 1008
RECONNECT_SECONDS_MAX: Final = 10.0
MESSAGES_KEPT_MAX: Final = 200
COMPRESSION: Final = 4


def mount_console(  # noqa: PLR0913 - what it works with
    app: FastAPI,
    *,
    clock: Clock,
    jwt_secret: str,
    tokens: TokenSettings,
    public_url: str,
    currency: Currency = NO_CURRENCY,
) -> None:
    """Add the console to a control plane; it starts and stops with it."""
    _set_up()
    show_money_in(currency)
    show_files_of(app.state.delivery_url)
    guard = SessionGuard(app, clock=clock, jwt_secret=jwt_secret, tokens=tokens, public_url=public_url)
    app.state.session_guard = guard
    app.include_router(theme.router)
    app.include_router(log_in.router)
    app.include_router(password_pages.router)
    app.include_router(second_factor_pages.router)
    app.include_router(single_sign_on_pages.router)
    app.router.routes.append(ConsoleRoute(guard))
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(outer: FastAPI) -> AsyncGenerator[Any]:
        async with inner(outer) as state, nicegui.app.router.lifespan_context(nicegui.app):
            yield state

    app.router.lifespan_context = lifespan


class ConsoleRoute(BaseRoute):
    """Passes the console's addresses to NiceGUI, and leaves all others to the API."""

    def __init__(self, guard: SessionGuard) -> None:
        self._guard = guard

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        is_ours = scope["type"] in {"http", "websocket"} and _is_ours(scope["path"])
        return (Match.FULL if is_ours else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = await self._find_refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        scope.setdefault("state", {})["session_guard"] = self._guard

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(MutableHeaders(scope=message), scope["path"])
            await send(message)

        await nicegui.app(scope, receive, send_with_headers)

    async def _find_refusal(self, scope: Scope) -> ASGIApp | None:
        """Decide before NiceGUI does: it keeps 27 KB of each page for a minute, of an error page too."""
        path: str = scope["path"]
        connection = HTTPConnection(scope)
        if path.startswith(SOCKET) or (UPLOAD.fullmatch(path) and scope.get("method") == "POST"):
            return None if await self._may_listen(connection) else _refuse
        if scope["type"] != "http":
            return _refuse
        if path.startswith(FILES):
            return None if path.startswith(KNOWN_FILES) else PlainTextResponse("There is no such file.", 404)
        if scope["method"] not in {"GET", "HEAD"}:
            return PlainTextResponse("A page is read with GET.", 405, {"Allow": "GET, HEAD"})
        found = await self._guard.find_session(connection)
        if found is None:
            return RedirectResponse(make_log_in_url(connection), 303, {"Cache-Control": "no-store"})
        scope.setdefault("state", {})["console_session"] = found
        return None

    async def _may_listen(self, connection: HTTPConnection) -> bool:
        """Return whether a socket, or a file, comes from one of our pages: browsers open sockets for any site."""
        return (
            self._guard.is_same_origin(connection) and await self._guard.find_session(connection) is not None
        )


def _is_ours(path: str) -> bool:
    return path == ADDRESSES[0] or path.startswith((f"{ADDRESSES[0]}/", *ADDRESSES[1:]))


def _add_headers(headers: MutableHeaders, path: str) -> None:
    if path.startswith("/_nicegui/") and not UPLOAD.fullmatch(path):
        # The address contains NiceGUI's version.
        headers["Cache-Control"] = theme.KEPT
    else:
        headers["Content-Security-Policy"] = theme.POLICY
        # Without a referrer browsers send no origin with a form, and the log-out form needs it.
        headers["Referrer-Policy"] = "same-origin"
        headers["Cache-Control"] = "no-store"


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": POLICY_VIOLATION})
    else:
        await PlainTextResponse("Log in first.", 403)(scope, receive, send)


@functools.cache
def _set_up() -> None:
    """Configure NiceGUI once per process: it loads nothing from elsewhere and stores nothing on disk."""
    nicegui.app.config.add_run_config(
        reload=False,
        title="Adloom",
        viewport="width=device-width, initial-scale=1",
        favicon=theme.find_asset("mark.svg").decode(),
        dark=None,
        language="en-US",
        # Our bindings are event-driven; polling them ten times a second is waste.
        binding_refresh_interval=None,
        reconnect_timeout=RECONNECT_SECONDS_MAX,
        message_history_length=MESSAGES_KEPT_MAX,
        tailwind=False,
        unocss=None,
        prod_js=True,
        show_welcome_message=False,
        markdown=False,
    )
    # Large files are cached by browsers; stronger compression would only delay the first page.
    nicegui.app.add_middleware(GZipMiddleware, compresslevel=COMPRESSION)
    ui.add_head_html(theme.build_head() + theme.SPECULATION, shared=True)
    logging.getLogger("nicegui").addFilter(_is_worth_a_line)
    # Import every module of the folder, so that none has to be listed here.
    for module in pkgutil.walk_packages(pages.__path__, f"{pages.__name__}."):
        importlib.import_module(module.name)
    register_not_found()


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    # The user has seen the API's refusal; it needs no log line.
    return not isinstance(record.msg, ProblemError | SessionEndedError)
