"""The log-in and log-out forms: plain HTML without scripts or web sockets."""

from html import escape
from typing import Annotated, Final
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from adloom.console.session import COOKIE, HOME, LOG_IN, SessionGuard, make_local_url
from adloom.console.theme import asset_address, head
from adloom.core.errors import AdloomError, BadRequestError, ForbiddenError, RateLimitedError
from adloom.identity.api import limit_attempts
from adloom.runtime.http.api.dependencies import Now

FOREIGN_FORM: Final = "This form was sent from another site. Open the log-in page here and try again."

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
PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Adloom: log in</title>{head}</head>
<body><main class="al-gate"><form method="post" action="{action}">
<h1><img src="{mark}" alt="">Adloom</h1>{notice}
<label>E-mail address<input type="email" name="email" value="{email}" autocomplete="username" required maxlength="255"{email_focus}></label>
<label>Password<input type="password" name="password" autocomplete="current-password" required maxlength="1024"{password_focus}></label>
<input type="hidden" name="next" value="{next}">
<button type="submit">Log in</button>
<p class="quiet small">The first start of <code>adloom up</code> has printed a link and a password.</p>
</form></main></body></html>
"""

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
        token = await guard.sessions.log_in(
            email[:EMAIL_LENGTH_MAX].strip(), fields.get("password", "")[:PASSWORD_LENGTH_MAX], now=now
        )
    except AdloomError as error:
        return _show_refusal(goal, error, email=email)
    response = RedirectResponse(goal, 303, HEADERS)
    guard.set_cookie(response, token)
    return response


@router.get("/console/welcome")
async def welcome(request: Request, guard: Guard, now: Now) -> Response:
    """Log in with the one-time link that the first start printed."""
    try:
        limit_attempts(request, now)
        token = await guard.sessions.welcome(request.query_params.get("token", ""), now=now)
    except AdloomError as error:
        return _show_refusal(HOME, error)
    response = RedirectResponse(HOME, 303, HEADERS)
    guard.set_cookie(response, token)
    return response


@router.post("/console/logout")
async def log_out(request: Request, guard: Guard) -> Response:
    if not guard.is_same_origin(request):
        return _show_refusal(HOME, ForbiddenError(FOREIGN_FORM))
    if token := request.cookies.get(COOKIE):
        await guard.sessions.log_out(token)
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


def _form(goal: str, *, notice: str = "", email: str = "", status: int = 200) -> Response:
    page = PAGE.format(
        head=head(),
        action=LOG_IN,
        mark=asset_address("mark.svg"),
        notice=notice,
        email=escape(email),
        email_focus="" if email else " autofocus",
        password_focus=" autofocus" if email else "",
        next=escape(goal),
    )
    return HTMLResponse(page, status, HEADERS)
