"""The log-in and log-out forms of the console."""

from html import escape
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from adloom.console.sign_in.gate import (
    ADDRESS_LENGTH_MAX,
    FOREIGN_FORM,
    HEADERS,
    HOME,
    LOG_IN,
    Guard,
    build_gate_page,
    build_notice,
    enter,
    make_local_url,
    read_form,
    read_own_form,
    require_same_again,
)
from adloom.console.sign_in.second_factor_pages import ask_for_second_factor
from adloom.console.sign_in.single_sign_on_pages import make_button
from adloom.core.errors import (
    AdloomError,
    ForbiddenError,
    RateLimitedError,
    UnavailableError,
    ValidationFailedError,
)
from adloom.identity.api import limit_attempts
from adloom.identity.console_sessions import HalfLoggedInError
from adloom.identity.sessions import Credentials, PasswordChangeRequiredError
from adloom.identity.single_sign_on.sign_on import SingleSignOn
from adloom.runtime.http.api.dependencies import Now
from adloom.runtime.http.api.origin import find_origin

WELCOME: Final = "/console/welcome"
FIRST_PASSWORD: Final = (
    "The password is right, but it was for the first log-in only."
    " Enter it once more, and choose your own, of 10 characters or more."
)
ENTER_AGAIN: Final = "Enter all three once more: the first password, and yours twice."
NEW_PASSWORD: Final = (
    '<label>New password, of 10 characters or more<input type="password" name="newPassword" autocomplete="new-password" required'
    ' minlength="10" maxlength="1024"></label>'
    '<label>The same again<input type="password" name="again" autocomplete="new-password" required'
    ' minlength="10" maxlength="1024"></label>'
)
FORGOT: Final = "/console/forgot"
FORGOT_LINK: Final = f'\n<p class="small"><a href="{FORGOT}">Forgot your password?</a></p>'
EMAIL_LENGTH_MAX: Final = 255
PASSWORD_LENGTH_MAX: Final = 1_024
NOTICES: Final = {
    "out": "You are logged out.",
    "chosen": "Your password is set. Log in with it.",
    "changed": "Your password is changed. Log in with it.",
}


router = APIRouter(include_in_schema=False)


@router.get(LOG_IN)
async def show_log_in(request: Request, guard: Guard) -> Response:
    goal = make_local_url(request.query_params.get("next"))
    if await guard.find_session(request) is not None:
        return RedirectResponse(goal, 303)
    said = [text for name, text in NOTICES.items() if name in request.query_params]
    return _answer_form(request, goal, notice_html=build_notice(said[0], kind="good") if said else "")


@router.post(LOG_IN)
async def log_in(request: Request, guard: Guard, now: Now) -> Response:
    email, goal = "", HOME
    try:
        fields = await read_form(request)
        email, goal = fields.get("email", ""), make_local_url(fields.get("next"))
        if not guard.is_same_origin(request):
            raise ForbiddenError(FOREIGN_FORM)
        await limit_attempts(request, now)
        require_same_again(fields)
        shown = Credentials(
            email=email[:EMAIL_LENGTH_MAX].strip(),
            password=fields.get("password", "")[:PASSWORD_LENGTH_MAX],
            new_password=fields["newPassword"][:PASSWORD_LENGTH_MAX] if "newPassword" in fields else None,
        )
        token = await guard.sessions.log_in(shown, now=now, origin=find_origin(request))
    except HalfLoggedInError as half:
        return await ask_for_second_factor(guard, half, goal, now)
    except PasswordChangeRequiredError:
        return _ask_for_new_password(request, goal, FIRST_PASSWORD, email=email, kind="info")
    except ValidationFailedError as error:
        sentence = f"{error.detail} {ENTER_AGAIN}"
        return _ask_for_new_password(request, goal, sentence, email=email, kind="bad")
    except AdloomError as error:
        return _show_refusal(request, goal, error, email=email)
    return enter(guard, goal, token)


@router.get(WELCOME)
async def show_welcome(request: Request, guard: Guard) -> Response:
    """Show a button that uses the link: programs that open links before people do must not use it up."""
    if await guard.find_session(request) is not None:
        return RedirectResponse(HOME, 303, HEADERS)
    token = request.query_params.get("token", "")[:ADDRESS_LENGTH_MAX]
    return build_gate_page("welcome.html", action=WELCOME, token=escape(token))


@router.post(WELCOME)
async def log_in_with_link(request: Request, guard: Guard, now: Now) -> Response:
    """Log in with the one-time link that the first start printed."""
    try:
        fields = await read_own_form(request, guard, now)
        token = await guard.sessions.redeem_welcome(
            fields.get("token", ""), now=now, origin=find_origin(request)
        )
    except HalfLoggedInError as half:
        return await ask_for_second_factor(guard, half, HOME, now)
    except AdloomError as error:
        return _show_refusal(request, HOME, error)
    return enter(guard, HOME, token)


@router.post("/console/logout")
async def log_out(request: Request, guard: Guard, now: Now) -> Response:
    if not guard.is_same_origin(request):
        return _show_refusal(request, HOME, ForbiddenError(FOREIGN_FORM))
    if token := guard.read_cookie(request):
        await guard.sessions.log_out(token, now=now, origin=find_origin(request))
    response = RedirectResponse(f"{LOG_IN}?out", 303, HEADERS)
    guard.delete_cookie(response)
    return response


def _show_refusal(request: Request, goal: str, error: AdloomError, *, email: str = "") -> Response:
    response = _answer_form(
        request,
        goal,
        notice_html=build_notice(error.detail, kind="bad"),
        email=email,
        status=error.status.value,
    )
    if isinstance(error, RateLimitedError | UnavailableError):
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response


def _ask_for_new_password(request: Request, goal: str, sentence: str, *, email: str, kind: str) -> Response:
    return _answer_form(
        request,
        goal,
        notice_html=build_notice(sentence, kind=kind),
        email=email,
        status=403,
        extra=NEW_PASSWORD,
    )


def _answer_form(  # noqa: PLR0913 - what the form can say
    request: Request,
    goal: str,
    *,
    notice_html: str = "",
    email: str = "",
    status: int = 200,
    extra: str = "",
) -> Response:
    sign_on: SingleSignOn | None = request.app.state.single_sign_on
    button = "" if sign_on is None else make_button(sign_on, goal)
    if not request.app.state.takes_passwords:
        return build_gate_page("sign_on.html", status, notice=notice_html, button=button)
    is_mailing = request.app.state.mail_queue is not None
    return build_gate_page(
        "log_in.html",
        status,
        action=LOG_IN,
        notice=notice_html,
        email=escape(email),
        email_focus="" if email else " autofocus",
        password_focus=" autofocus" if email else "",
        extra=extra,
        next=escape(goal),
        below=button + (FORGOT_LINK if is_mailing else ""),
    )
