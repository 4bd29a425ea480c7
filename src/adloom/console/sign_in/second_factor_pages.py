"""The pages between the password and the console: the code of a second factor, and setting one up."""

from datetime import datetime
from html import escape
from typing import Final

from fastapi import APIRouter, Request, Response

from adloom.console.sign_in.gate import (
    Guard,
    SessionGuard,
    build_gate_page,
    build_notice,
    enter,
    make_local_url,
    read_own_form,
    show_sentence,
)
from adloom.core.errors import AdloomError, ValidationFailedError
from adloom.identity.console_sessions import HalfLoggedInError
from adloom.identity.second_factor.second_factors import SecondFactorWrongError
from adloom.identity.second_factor.totp import draw_qr_code
from adloom.runtime.http.api.dependencies import Now
from adloom.runtime.http.api.origin import find_origin

CODE: Final = "/console/code"
SET_UP: Final = "/console/set-up"

router = APIRouter(include_in_schema=False)


async def ask_for_second_factor(
    guard: SessionGuard, half: HalfLoggedInError, goal: str, now: datetime
) -> Response:
    """Show what is missing after the right password: a code, or a second factor to begin with."""
    if not half.is_set_up:
        return _show_code_form(half.pending, goal)
    try:
        return await _show_set_up_form(guard, half.pending, goal, now)
    except AdloomError as error:
        return show_sentence(error)


@router.post(CODE)
async def check_code(request: Request, guard: Guard, now: Now) -> Response:
    pending, goal = "", ""
    try:
        pending, code, goal = await _read_form(request, guard, now)
        token = await guard.sessions.go_on(pending, code, now=now, origin=find_origin(request))
    except SecondFactorWrongError as error:
        return _show_code_form(
            pending, goal, build_notice(error.detail, kind="bad"), status=error.status.value
        )
    except AdloomError as error:
        return show_sentence(error)
    return enter(guard, goal, token)


@router.post(SET_UP)
async def set_up(request: Request, guard: Guard, now: Now) -> Response:
    pending, goal = "", ""
    try:
        pending, code, goal = await _read_form(request, guard, now)
        try:
            token, codes = await guard.sessions.set_up(pending, code, now=now, origin=find_origin(request))
        except ValidationFailedError as error:
            said = build_notice(error.detail, kind="bad")
            return await _show_set_up_form(guard, pending, goal, now, said, status=error.status.value)
    except AdloomError as error:
        return show_sentence(error)
    response = build_gate_page("recovery.html", action=escape(goal), codes="\n".join(codes))
    guard.set_cookie(response, token)
    return response


async def _read_form(request: Request, guard: SessionGuard, now: datetime) -> tuple[str, str, str]:
    """Return who is half logged in, the code, and the page to open; raise for a foreign form."""
    fields = await read_own_form(request, guard, now)
    return fields.get("pending", ""), fields.get("code", ""), make_local_url(fields.get("next"))


def _show_code_form(pending: str, goal: str, notice_html: str = "", *, status: int = 200) -> Response:
    return build_gate_page(
        "code.html", status, action=CODE, notice=notice_html, pending=escape(pending), next=escape(goal)
    )


async def _show_set_up_form(  # noqa: PLR0913 - what the form says
    guard: SessionGuard,
    pending: str,
    goal: str,
    now: datetime,
    notice_html: str = "",
    *,
    status: int = 200,
) -> Response:
    begun = await guard.sessions.begin_set_up(pending, now=now)
    return build_gate_page(
        "set_up.html",
        status,
        action=SET_UP,
        notice=notice_html,
        picture=draw_qr_code(begun.app_url),
        secret=begun.secret,
        pending=escape(pending),
        next=escape(goal),
    )
