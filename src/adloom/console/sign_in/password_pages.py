"""The page behind an invitation or a reset, where a person chooses a password, and the one that asks for a reset."""

from html import escape
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from adloom.console.sign_in.gate import (
    ADDRESS_LENGTH_MAX,
    HEADERS,
    LOG_IN,
    Guard,
    build_gate_page,
    build_notice,
    read_own_form,
    require_same_again,
    show_sentence,
)
from adloom.console.sign_in.log_in import EMAIL_LENGTH_MAX, FORGOT
from adloom.core.errors import AdloomError, ValidationFailedError
from adloom.identity.api import limit_attempts
from adloom.identity.link.api import MailNotSetUpError, send_forgotten_mail
from adloom.identity.link.choose_password import PasswordLinks
from adloom.identity.link.store import PAGE, LinkPurpose
from adloom.runtime.http.api.dependencies import Now
from adloom.runtime.http.api.origin import find_origin

SENTENCES: Final = {
    LinkPurpose.INVITATION: "Welcome to Adloom. Choose a password; you log in with it from now on.",
    LinkPurpose.RESET: "Choose a new password. You are logged out everywhere else.",
}
ASKED: Final = (
    "If there is an account with this address, we send it a link for a new password. It comes within minutes, and"
    " works for a day."
)

router = APIRouter(include_in_schema=False)


@router.get(PAGE)
async def show_password_form(request: Request, now: Now) -> Response:
    """Show the form; only sending it uses the link up, because some programs open links before people do."""
    token = request.query_params.get("token", "")[:ADDRESS_LENGTH_MAX]
    try:
        await limit_attempts(request, now)
        return await _show_form(request, token, now)
    except AdloomError as error:
        return show_sentence(error)


@router.post(PAGE)
async def choose_password(request: Request, guard: Guard, now: Now) -> Response:
    token = ""
    try:
        fields = await read_own_form(request, guard, now)
        token, password = fields.get("token", ""), fields.get("newPassword", "")
        require_same_again(fields)
        await _get_links(request).choose_password(token, password, now=now, origin=find_origin(request))
    except ValidationFailedError as error:
        try:
            return await _show_form(request, token, now, build_notice(error.detail, kind="bad"), status=400)
        except AdloomError as ended:
            return show_sentence(ended)
    except AdloomError as error:
        return show_sentence(error)
    response = RedirectResponse(f"{LOG_IN}?chosen", 303, HEADERS)
    guard.delete_cookie(response)
    return response


@router.get(FORGOT)
async def show_forgot_form(request: Request) -> Response:
    if request.app.state.mail_queue is None:
        return show_sentence(MailNotSetUpError())
    return build_gate_page("forgot.html", action=FORGOT, log_in=LOG_IN)


@router.post(FORGOT)
async def ask_for_link(request: Request, guard: Guard, now: Now) -> Response:
    try:
        email = (await read_own_form(request, guard, now)).get("email", "")[:EMAIL_LENGTH_MAX]
        await send_forgotten_mail(request, email, find_origin(request), now)
    except AdloomError as error:
        return show_sentence(error)
    return build_gate_page(
        "sentence.html", action=LOG_IN, notice=build_notice(ASKED, kind="good"), label="To the log-in"
    )


def _get_links(request: Request) -> PasswordLinks:
    return request.app.state.password_links


async def _show_form(
    request: Request, token: str, now: Now, notice_html: str = "", *, status: int = 200
) -> Response:
    person = await _get_links(request).find(token, now=now)
    return build_gate_page(
        "password.html",
        status,
        action=PAGE,
        notice=notice_html,
        sentence=SENTENCES[person.purpose],
        email=escape(person.email),
        token=escape(token),
    )
