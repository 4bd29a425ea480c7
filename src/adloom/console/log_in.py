"""Sessions of the console, and the log-in and log-out forms: plain HTML without scripts or web sockets."""

from datetime import timedelta
from html import escape
from typing import Annotated, Final
from urllib.parse import parse_qs, quote, urlsplit

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.requests import HTTPConnection

from adloom.console.client import ApiClient, SessionEndedError
from adloom.console.theme import asset, asset_address, head
from adloom.core.clock import Clock
from adloom.core.errors import (
    AdloomError,
    BadRequestError,
    ForbiddenError,
    RateLimitedError,
    ValidationFailedError,
)
from adloom.identity.api import limit_attempts
from adloom.identity.console_sessions import LIFETIME_MAX, ConsoleSession, ConsoleSessions
from adloom.identity.sessions import Credentials, PasswordChangeRequiredError
from adloom.runtime.auth import issue_access_token
from adloom.runtime.http.api.dependencies import Now
from adloom.runtime.http.api.origin import find_origin
from adloom.runtime.settings import TokenSettings

COOKIE: Final = "adloom_console"
HOME: Final = "/console"
LOG_IN: Final = "/console/login"
WELCOME: Final = "/console/welcome"
# A token is signed for each call, so it need not outlive one.
TOKEN_LIFETIME: Final = timedelta(minutes=1)
ADDRESS_LENGTH_MAX: Final = 2_000
FOREIGN_FORM: Final = "This form was sent from another site. Open the log-in page here and try again."
FIRST_PASSWORD: Final = (
    "The password is right, but it was for the first log-in only. Enter it once more, and choose your own."
)
NEW_PASSWORD: Final = (
    '<label>New password<input type="password" name="newPassword" autocomplete="new-password" required'
    ' minlength="10" maxlength="1024"></label>'
)
FIELDS_MAX: Final = 10
EMAIL_LENGTH_MAX: Final = 255
PASSWORD_LENGTH_MAX: Final = 1_024
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
        self._is_https = public_url.startswith("https://")
        # Browsers take the first only over HTTPS and from this host itself: no subdomain can set it.
        self._cookie = f"__Host-{COOKIE}" if self._is_https else COOKIE

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

        async def access_token(is_active: bool) -> str:  # noqa: FBT001 - as its type says
            now = self.clock.now()
            session = await self.sessions.find(token, now=now)
            if session is None:
                raise SessionEndedError
            if is_active:
                await self.sessions.mark_seen(token, session, now=now)
            return issue_access_token(
                self._jwt_secret,
                session.user.actor,
                now=now,
                lifetime=TOKEN_LIFETIME,
                tokens=self._tokens,
                epoch=session.user.token_epoch,
            )

        return ApiClient(self._app, access_token)

    def is_same_origin(self, connection: HTTPConnection) -> bool:
        """Return whether a request comes from one of our pages, as far as the browser says."""
        origin = connection.headers.get("origin")
        if origin is None:
            return connection.headers.get("sec-fetch-site", "none") in {"none", "same-origin"}
        return origin == _parse_origin(self.public_url) or urlsplit(origin).netloc == connection.headers.get(
            "host"
        )

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
            secure=self._is_https,
        )

    def delete_cookie(self, response: Response) -> None:
        response.delete_cookie(self._cookie, path="/", httponly=True, samesite="lax", secure=self._is_https)


def make_log_in_url(request: HTTPConnection) -> str:
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


router = APIRouter(include_in_schema=False)


def _get_guard(request: Request) -> SessionGuard:
    return request.app.state.session_guard


Guard = Annotated[SessionGuard, Depends(_get_guard)]


@router.get(LOG_IN)
async def show_log_in(request: Request, guard: Guard) -> Response:
    goal = make_local_url(request.query_params.get("next"))
    if await guard.find_session(request) is not None:
        return RedirectResponse(goal, 303)
    is_out = "out" in request.query_params
    return _form(goal, notice=_notice("You are logged out.", kind="good") if is_out else "")


@router.post(LOG_IN)
async def log_in(request: Request, guard: Guard, now: Now) -> Response:
    email, goal = "", HOME
    try:
        fields = await _fields(request)
        email, goal = fields.get("email", ""), make_local_url(fields.get("next"))
        if not guard.is_same_origin(request):
            raise ForbiddenError(FOREIGN_FORM)
        limit_attempts(request, now)
        shown = Credentials(
            email=email[:EMAIL_LENGTH_MAX].strip(),
            password=fields.get("password", "")[:PASSWORD_LENGTH_MAX],
            new_password=fields["newPassword"][:PASSWORD_LENGTH_MAX] if "newPassword" in fields else None,
        )
        token = await guard.sessions.log_in(shown, now=now, origin=find_origin(request))
    except PasswordChangeRequiredError:
        return _ask_for_new_password(goal, FIRST_PASSWORD, email=email)
    except ValidationFailedError as error:
        return _ask_for_new_password(goal, error.detail, email=email)
    except AdloomError as error:
        return _show_refusal(goal, error, email=email)
    response = RedirectResponse(goal, 303, HEADERS)
    guard.set_cookie(response, token)
    return response


@router.get(WELCOME)
async def show_welcome(request: Request) -> Response:
    """Show a button that uses the link: programs that open links before people do must not use it up."""
    token = request.query_params.get("token", "")[:ADDRESS_LENGTH_MAX]
    return _page("welcome.html", action=WELCOME, token=escape(token))


@router.post(WELCOME)
async def welcome(request: Request, guard: Guard, now: Now) -> Response:
    """Log in with the one-time link that the first start printed."""
    try:
        if not guard.is_same_origin(request):
            raise ForbiddenError(FOREIGN_FORM)
        limit_attempts(request, now)
        fields = await _fields(request)
        token = await guard.sessions.welcome(fields.get("token", ""), now=now, origin=find_origin(request))
    except AdloomError as error:
        return _show_refusal(HOME, error)
    response = RedirectResponse(HOME, 303, HEADERS)
    guard.set_cookie(response, token)
    return response


@router.post("/console/logout")
async def log_out(request: Request, guard: Guard, now: Now) -> Response:
    if not guard.is_same_origin(request):
        return _show_refusal(HOME, ForbiddenError(FOREIGN_FORM))
    if token := guard.read_cookie(request):
        await guard.sessions.log_out(token, now=now, origin=find_origin(request))
    response = RedirectResponse(f"{LOG_IN}?out", 303, HEADERS)
    guard.delete_cookie(response)
    return response


async def _fields(request: Request) -> dict[str, str]:
    text = (await request.body()).decode(errors="replace")
    # PostgreSQL texts cannot contain NUL.
    try:
        pairs = parse_qs(text.replace("%00", ""), keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError as error:
        raise BadRequestError("This form cannot be read.") from error
    return {name: values[-1].replace("\0", "") for name, values in pairs.items()}


def _show_refusal(goal: str, error: AdloomError, *, email: str = "") -> Response:
    response = _form(goal, notice=_notice(error.detail, kind="bad"), email=email, status=error.status.value)
    if isinstance(error, RateLimitedError):
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response


def _notice(text: str, *, kind: str) -> str:
    return f'<p class="al-notice {kind}" role="alert">{escape(text)}</p>'


def _ask_for_new_password(goal: str, sentence: str, *, email: str) -> Response:
    return _form(goal, notice=_notice(sentence, kind="bad"), email=email, status=403, extra=NEW_PASSWORD)


def _form(goal: str, *, notice: str = "", email: str = "", status: int = 200, extra: str = "") -> Response:
    return _page(
        "log_in.html",
        status,
        action=LOG_IN,
        notice=notice,
        email=escape(email),
        email_focus="" if email else " autofocus",
        password_focus=" autofocus" if email else "",
        extra=extra,
        next=escape(goal),
    )


def _page(name: str, status: int = 200, **parts: str) -> Response:
    page = asset(name).decode().format(head=head(), mark=asset_address("mark.svg"), **parts)
    return HTMLResponse(page, status, HEADERS)
