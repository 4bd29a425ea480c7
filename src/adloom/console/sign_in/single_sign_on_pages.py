"""To the provider of single sign-on, and back."""

from html import escape
from typing import Final
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from adloom.console.sign_in.gate import (
    ADDRESS_LENGTH_MAX,
    HEADERS,
    Guard,
    enter,
    make_local_url,
    show_sentence,
)
from adloom.core.errors import AdloomError, NotFoundError
from adloom.identity.api import limit_attempts
from adloom.identity.pending import LIFETIME
from adloom.identity.single_sign_on.sign_on import CALLBACK, SingleSignOn
from adloom.runtime.http.api.dependencies import Now
from adloom.runtime.http.api.origin import find_origin

SIGN_ON: Final = "/console/sso"
COOKIE: Final = "adloom_sign_on"

router = APIRouter(include_in_schema=False)


def make_button(sign_on: SingleSignOn, goal: str) -> str:
    """Return the button that leads to the provider."""
    return (
        f'\n<a class="al-button" href="{SIGN_ON}?next={escape(quote(goal, safe="/"))}">'
        f"Log in with {escape(sign_on.name)}</a>"
    )


@router.get(SIGN_ON)
async def begin(request: Request, guard: Guard, now: Now) -> Response:
    """Send the browser to the provider; what we need again is in a cookie that scripts cannot read."""
    try:
        await limit_attempts(request, now)
        goal = make_local_url(request.query_params.get("next"))
        begun = await _sign_on(request).begin(goal, now=now)
    except AdloomError as error:
        return show_sentence(error)
    response = RedirectResponse(begun.url, 303, HEADERS)
    # Lax, not strict: the browser comes back from another site.
    response.set_cookie(
        guard.name_cookie(COOKIE),
        begun.pending,
        max_age=int(LIFETIME.total_seconds()),
        path="/",
        httponly=True,
        samesite="lax",
        secure=guard.is_https,
    )
    return response


@router.get(CALLBACK)
async def come_back(request: Request, guard: Guard, now: Now) -> Response:
    """Log in whom the provider has sent back."""
    name = guard.name_cookie(COOKIE)
    try:
        await limit_attempts(request, now)
        query = {key: value[:ADDRESS_LENGTH_MAX] for key, value in request.query_params.items()}
        pending, origin = request.cookies.get(name, ""), find_origin(request)
        user, goal = await _sign_on(request).finish(query, pending, now=now, origin=origin)
        token = await guard.sessions.begin_single_sign_on(user, now=now, origin=origin)
        response = enter(guard, make_local_url(goal), token)
    except AdloomError as error:
        response = show_sentence(error)
    # What was begun is used up, whatever came of it.
    response.delete_cookie(name, path="/", httponly=True, samesite="lax", secure=guard.is_https)
    return response


def _sign_on(request: Request) -> SingleSignOn:
    sign_on: SingleSignOn | None = request.app.state.single_sign_on
    if sign_on is None:
        raise NotFoundError("There is no single sign-on here. Log in with your password.")
    return sign_on
