"""Who is logged in: the cookie, and what stands behind it."""

from datetime import timedelta
from typing import Final
from urllib.parse import quote, urlsplit

from fastapi import FastAPI, Request, Response
from starlette.requests import HTTPConnection

from adloom.console.client import ApiClient, SessionEndedError
from adloom.core.clock import Clock
from adloom.identity.console_session import LIFETIME_MAX, ConsoleSession
from adloom.identity.console_sessions import ConsoleSessions
from adloom.runtime.auth import issue_access_token

COOKIE: Final = "adloom_console"
HOME: Final = "/console"
LOG_IN: Final = "/console/login"
# A token is signed for each call, so it need not outlive one.
TOKEN_LIFETIME: Final = timedelta(minutes=1)
ADDRESS_LENGTH_MAX: Final = 2_000


class SessionGuard:
    """Finds the session of a cookie, and makes API clients that act for its user."""

    def __init__(self, app: FastAPI, *, clock: Clock, jwt_secret: str, public_url: str) -> None:
        self.clock = clock
        self.public_url = public_url
        self._app = app
        self._jwt_secret = jwt_secret

    @property
    def sessions(self) -> ConsoleSessions:
        """Exists once the control plane has connected."""
        return self._app.state.console_sessions

    async def find_session(self, connection: HTTPConnection) -> tuple[str, ConsoleSession] | None:
        token = connection.cookies.get(COOKIE)
        if not token:
            return None
        session = await self.sessions.find(token, now=self.clock.now())
        return (token, session) if session is not None else None

    def make_client(self, token: str) -> ApiClient:
        """Make an API client that acts for a user while the session lasts."""

        async def access_token(is_active: bool) -> str:  # noqa: FBT001 - as its type says
            now = self.clock.now()
            session = await self.sessions.find(token, now=now)
            if session is None:
                raise SessionEndedError
            if is_active:
                await self.sessions.mark_seen(token, session, now=now)
            return issue_access_token(self._jwt_secret, session.user.actor, now=now, lifetime=TOKEN_LIFETIME)

        return ApiClient(self._app, access_token)

    def is_same_origin(self, connection: HTTPConnection) -> bool:
        """Return whether a request comes from one of our pages, as far as the browser says."""
        origin = connection.headers.get("origin")
        if origin is None:
            return connection.headers.get("sec-fetch-site", "none") in {"none", "same-origin"}
        return origin == _parse_origin(self.public_url) or urlsplit(origin).netloc == connection.headers.get(
            "host"
        )

    def set_cookie(self, response: Response, token: str) -> None:
        """Set the session cookie: scripts cannot read it, and other sites cannot send it."""
        response.set_cookie(
            COOKIE,
            token,
            max_age=int(LIFETIME_MAX.total_seconds()),
            path="/",
            httponly=True,
            samesite="lax",
            secure=self.public_url.startswith("https://"),
        )

    def delete_cookie(self, response: Response) -> None:
        response.delete_cookie(
            COOKIE, path="/", httponly=True, samesite="lax", secure=self.public_url.startswith("https://")
        )


def make_log_in_url(request: Request) -> str:
    """Return the address of the log-in that leads back to this page."""
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return LOG_IN if here == HOME else f"{LOG_IN}?next={quote(here, safe='/')}"


def make_local_url(address: str | None) -> str:
    """Return the address to open after the log-in: a page of the console, never another site."""
    if address is None or len(address) > ADDRESS_LENGTH_MAX or not address.isprintable() or "\\" in address:
        return HOME
    parts = urlsplit(address)
    is_page = parts.path == HOME or parts.path.startswith(f"{HOME}/")
    is_local = not parts.scheme and not parts.netloc and is_page and ".." not in parts.path
    return address if is_local and parts.path != LOG_IN else HOME


def _parse_origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
