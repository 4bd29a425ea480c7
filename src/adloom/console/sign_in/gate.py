"""Sessions of the console, and what pages before the log-in share: plain HTML without scripts or web sockets."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from html import escape
from typing import Annotated, Final
from urllib.parse import parse_qs, quote, urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.requests import HTTPConnection

from adloom.console.client import ApiClient, SessionEndedError
from adloom.console.theme import build_head, find_asset, find_asset_address
from adloom.core.clock import Clock
from adloom.core.errors import (
    AdloomError,
    BadRequestError,
    ForbiddenError,
    RateLimitedError,
    UnavailableError,
    make_field_error,
)
from adloom.identity.api import limit_attempts
from adloom.identity.console_sessions import LIFETIME_MAX, ConsoleSession, ConsoleSessions
from adloom.runtime.auth.access_token import issue_access_token
from adloom.runtime.http.api.dependencies import depend_on
from adloom.runtime.http.event_feed import LISTENING_SECONDS_MAX
from adloom.runtime.settings import TokenSettings

COOKIE: Final = "adloom_console"
HOME: Final = "/console"
LOG_IN: Final = "/console/login"
# A token is signed for each call, so it need not outlive one: a stream of events is the longest, and ends with it.
TOKEN_LIFETIME: Final = timedelta(seconds=LISTENING_SECONDS_MAX)
ADDRESS_LENGTH_MAX: Final = 2_000
FOREIGN_FORM: Final = "This form was sent from another site. Open the log-in page here and try again."
FIELDS_MAX: Final = 10
# Without `same-origin` browsers send no origin with a form.
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
}


class SessionGuard:
    """Finds the session of a cookie, and makes API clients that act for its user."""

    def __init__(
        self, app: FastAPI, *, clock: Clock, jwt_secret: str, tokens: TokenSettings, public_url: str
    ) -> None:
        self.clock = clock
        self.public_url = public_url
        self._app = app
        self._jwt_secret = jwt_secret
        self._tokens = tokens
        self.is_https = public_url.startswith("https://")
        self._cookie = self.name_cookie(COOKIE)

    def name_cookie(self, name: str) -> str:
        """Return the full name of a cookie: over HTTPS one that no subdomain can set."""
        return f"__Host-{name}" if self.is_https else name

    @property
    def sessions(self) -> ConsoleSessions:
        """Exists once the control plane has connected."""
        return self._app.state.console_sessions

    async def find_session(self, connection: HTTPConnection) -> tuple[str, ConsoleSession] | None:
        token = self.read_cookie(connection)
        if not token:
            return None
        session = await self.sessions.find(token, now=self.clock.now())
        return (token, session) if session is not None else None

    def make_client(self, token: str) -> ApiClient:
        """Make an API client that acts for a user while the session lasts."""

        async def fetch_access_token(is_active: bool) -> str:  # noqa: FBT001 - as its type says
            now = self.clock.now()
            session = await self.sessions.find(token, now=now)
            if session is None:
                raise SessionEndedError
            if is_active:
                await self.sessions.mark_seen(token, session, now=now)
            return issue_access_token(
                self._jwt_secret,
                session.user.caller,
                now=now,
                lifetime=TOKEN_LIFETIME,
                tokens=self._tokens,
                epoch=session.user.token_epoch,
            )

        return ApiClient(self._app, fetch_access_token)

    def is_same_origin(self, connection: HTTPConnection) -> bool:
        """Return whether a request comes from one of our pages, as far as the browser says."""
        origin = connection.headers.get("origin")
        if origin is None:
            return connection.headers.get("sec-fetch-site", "none") in {"none", "same-origin"}
        if origin == _parse_origin(self.public_url):
            return True
        try:
            return urlsplit(origin).netloc == connection.headers.get("host")
        except ValueError:  # Not an address at all.
            return False

    def read_cookie(self, connection: HTTPConnection) -> str | None:
        return connection.cookies.get(self._cookie)

    def set_cookie(self, response: Response, token: str) -> None:
        """Set the session cookie: scripts cannot read it, and other sites cannot send it."""
        response.set_cookie(
            self._cookie,
            token,
            max_age=int(LIFETIME_MAX.total_seconds()),
            path="/",
            httponly=True,
            samesite="lax",
            secure=self.is_https,
        )

    def delete_cookie(self, response: Response) -> None:
        response.delete_cookie(self._cookie, path="/", httponly=True, samesite="lax", secure=self.is_https)


def make_log_in_url(request: HTTPConnection) -> str:
    """Return the address of the log-in that leads back to this page."""
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return LOG_IN if here == HOME else f"{LOG_IN}?next={quote(here, safe='/')}"


def make_local_url(address: str | None) -> str:
    """Return the address to open after the log-in: a page of the console, never another site."""
    if address is None or len(address) > ADDRESS_LENGTH_MAX or not address.isprintable() or "\\" in address:
        return HOME
    try:
        parts = urlsplit(address)
    except ValueError:
        return HOME
    is_page = parts.path == HOME or parts.path.startswith(f"{HOME}/")
    is_local = not parts.scheme and not parts.netloc and is_page and ".." not in parts.path
    return address if is_local and parts.path != LOG_IN else HOME


def _parse_origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


Guard = Annotated[SessionGuard, depend_on("session_guard")]


async def read_form(request: Request) -> dict[str, str]:
    text = (await request.body()).decode(errors="replace")
    # PostgreSQL texts cannot contain NUL.
    try:
        pairs = parse_qs(text.replace("%00", ""), keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError as error:
        raise BadRequestError("This form cannot be read.") from error
    return {name: values[-1].replace("\0", "") for name, values in pairs.items()}


async def read_own_form(request: Request, guard: SessionGuard, now: datetime) -> dict[str, str]:
    """Read a form that one of our pages has sent; raise for one of another site, and for too many attempts."""
    if not guard.is_same_origin(request):
        raise ForbiddenError(FOREIGN_FORM)
    await limit_attempts(request, now)
    return await read_form(request)


def require_same_again(fields: Mapping[str, str]) -> None:
    """Refuse a new password that was not typed the same twice: a typing error would lock its owner out."""
    if fields.get("newPassword") != fields.get("again"):
        raise make_field_error("again", "must be the same", "The two passwords are not the same.")


def build_notice(text: str, *, kind: str) -> str:
    return f'<p class="al-notice {kind}" role="alert">{escape(text)}</p>'


def build_gate_page(name: str, status: int = 200, **parts: str) -> Response:
    """Fill the template of a page; its parts are HTML already."""
    page = find_asset(name).decode().format(head=build_head(), mark=find_asset_address("mark.svg"), **parts)
    return HTMLResponse(page, status, HEADERS)


def enter(guard: SessionGuard, goal: str, token: str) -> Response:
    """Open a page of the console with a session."""
    response = RedirectResponse(goal, 303, HEADERS)
    guard.set_cookie(response, token)
    return response


def show_sentence(error: AdloomError) -> Response:
    """Say why something was refused, with a way back to the log-in."""
    said = build_notice(error.detail, kind="bad")
    response = build_gate_page(
        "sentence.html", error.status.value, action=LOG_IN, notice=said, label="To the log-in"
    )
    if isinstance(error, RateLimitedError | UnavailableError):
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response
