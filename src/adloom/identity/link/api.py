"""Links of accounts over HTTP: an admin makes one, its owner chooses a password with it."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request, status
from pydantic import Field

from adloom.core.errors import ConflictError
from adloom.identity import store as users
from adloom.identity.account.api import ADMIN_ONLY, Password
from adloom.identity.account.changes import lock_person
from adloom.identity.api import RequestOrigin, SecurityAuthor, limit_attempts
from adloom.identity.attempt_limiter import SharedAttemptLimiter
from adloom.identity.link.choose_password import PasswordLinks
from adloom.identity.link.mail import put_link_mail
from adloom.identity.link.store import LinkPurpose, create_link
from adloom.identity.security_record import USER, record_event
from adloom.runtime.http.api.dependencies import (
    Database,
    Ids,
    Now,
    depend_on,
    describe_problems,
    make_router,
)
from adloom.runtime.http.api.origin import ClientOrigin
from adloom.runtime.http.api.routes import TimedRoute
from adloom.runtime.http.api.shapes import Answer, Body, Text255
from adloom.runtime.jobs.queue import JobQueue


class ChosenPasswordBody(Body):
    """The token of a link, and the password that its owner chooses."""

    token: Annotated[Text255, Field(repr=False)]
    new_password: Password


class ForgottenPasswordBody(Body):
    """The address of an account."""

    email: Text255


class MailNotSetUpError(ConflictError):
    """No mail server is set."""

    code = "MAIL_NOT_SET_UP"

    def __init__(self) -> None:
        super().__init__("No e-mail can be sent: ADLOOM_SMTP_URL is not set. Ask an admin for a link.")


class AccountLinkAnswer(Answer):
    """A link with which a person chooses a password: shown once, and works once."""

    purpose: LinkPurpose
    url: Annotated[str, Field(repr=False)]
    expires_at: datetime
    can_be_mailed: Annotated[bool, Field(description="Whether a mail server is set.")]


async def _get_mail_queue(request: Request) -> JobQueue:
    queue: JobQueue | None = request.app.state.mail_queue
    if queue is None:
        raise MailNotSetUpError
    return queue


LinksOfTheApp = Annotated[PasswordLinks, depend_on("password_links")]

MailQueue = Annotated[JobQueue, Depends(_get_mail_queue)]

admin_router = make_router("/admin/accounts", "accounts", 400, 401, 403, 404, 409, 503)
router = APIRouter(
    prefix="/auth",
    tags=["log in"],
    route_class=TimedRoute,
    dependencies=[Depends(limit_attempts)],
    responses=describe_problems(400, 401, 409, 413, 429, 503),
)


@admin_router.post("/{person_id}/link", dependencies=ADMIN_ONLY, status_code=status.HTTP_201_CREATED)
async def create_account_link(
    person_id: UUID, request: Request, author: SecurityAuthor, pool: Database, now: Now
) -> AccountLinkAnswer:
    """Make a link with which a person chooses a password: an invitation for 7 days, or a reset for one."""
    async with pool.acquire() as connection, connection.transaction():
        person = await lock_person(connection, person_id)
        link = await create_link(connection, person.id, now)
        if link is None:
            raise _make_disabled_error()
        changes = {"purpose": {"from": None, "to": link.person.purpose.value}}
        await record_event(connection, author, "link_made", USER, person.id, at=now, changes=changes)
    return AccountLinkAnswer(
        purpose=link.person.purpose,
        url=link.make_url(request.app.state.public_url),
        expires_at=link.expires_at,
        can_be_mailed=request.app.state.mail_queue is not None,
    )


@admin_router.post("/{person_id}/mail-link", dependencies=ADMIN_ONLY, status_code=status.HTTP_202_ACCEPTED)
async def mail_account_link(  # noqa: PLR0913, PLR0917 - what the framework hands in
    person_id: UUID, author: SecurityAuthor, pool: Database, queue: MailQueue, ids: Ids, now: Now
) -> None:
    """Send a person a link by e-mail, in the background."""
    async with pool.acquire() as connection, connection.transaction():
        person = await lock_person(connection, person_id)
        if person.disabled_at is not None:
            raise _make_disabled_error()
        await record_event(connection, author, "link_asked_for", USER, person.id, at=now)
    await put_link_mail(queue, ids.make(), person.id, author.network or "")


@router.post("/password", status_code=status.HTTP_204_NO_CONTENT)
async def choose_password(
    body: ChosenPasswordBody, links: LinksOfTheApp, origin: RequestOrigin, now: Now
) -> None:
    """Choose a password with the token of a link; all log-ins of the account end."""
    await links.choose_password(body.token, body.new_password, now=now, origin=origin)


@router.post("/forgot-password", status_code=status.HTTP_202_ACCEPTED)
async def ask_for_link(
    body: ForgottenPasswordBody, request: Request, origin: RequestOrigin, now: Now
) -> None:
    """Send a link for a new password to an address, if it has an account; the answer is always the same."""
    await send_forgotten_mail(request, body.email, origin, now)


async def send_forgotten_mail(request: Request, email: str, origin: ClientOrigin, now: datetime) -> None:
    """Do the same work for known and unknown addresses: nobody can tell them apart."""
    queue, attempts = await _get_mail_queue(request), _get_attempt_limiter(request)
    await attempts.take(email.strip().lower(), now=now)
    async with request.app.state.pool.acquire() as connection:
        found = await users.find_user(connection, email.strip(), origin.network, now)
    person_id = None if found is None or found.user.disabled_at is not None else found.user.id
    await put_link_mail(queue, request.app.state.ids.make(), person_id, origin.network)


def _get_attempt_limiter(request: Request) -> SharedAttemptLimiter:
    return request.app.state.forgotten_limiter


def _make_disabled_error() -> ConflictError:
    return ConflictError("The account is disabled; enable it first.", code="ACCOUNT_DISABLED")
