"""Second factors over HTTP: your own, and an admin's way to take a lost one off."""

from typing import Annotated, Final
from uuid import UUID

from fastapi import status
from pydantic import Field

from adloom.identity.account.api import ADMIN_ONLY, OwnId, OwnPassword
from adloom.identity.account.changes import lock_person
from adloom.identity.api import SecurityAuthor
from adloom.identity.model import PASSWORD_LENGTH_MAX
from adloom.identity.second_factor.second_factors import FactorState, SecondFactors
from adloom.identity.second_factor.totp import draw_qr_code
from adloom.resource.forms import build_answer
from adloom.runtime.http.api.dependencies import CurrentCaller, Database, Now, depend_on, make_router
from adloom.runtime.http.api.shapes import Answer, Body, Text, Text100


class FactorSetUpBody(Body):
    """Your password, so that nobody else sets it up at your desk."""

    current_password: Annotated[Text, Field(max_length=PASSWORD_LENGTH_MAX, repr=False)]


class FactorCodeBody(Body):
    """A code of the app; a recovery code counts where a second factor is on."""

    code: Annotated[Text100, Field(repr=False)]


FactorStateAnswer: Final = build_answer(
    "FactorStateAnswer", "Whether you have a second factor, and must have one.", FactorState
)


class FactorSetUpAnswer(Answer):
    """What an authenticator app needs: the secret to type, or its address as text and as a picture."""

    secret: Annotated[str, Field(repr=False)]
    app_url: Annotated[str, Field(repr=False)]
    svg: Annotated[str, Field(repr=False, description="A QR code of appUrl.")]


class RecoveryCodesAnswer(Answer):
    """Codes for when the app is lost: shown once, each works once."""

    recovery_codes: Annotated[list[str], Field(repr=False)]


FactorsOfTheApp = Annotated[SecondFactors, depend_on("second_factors")]
OWN: Final = "/me/second-factor"

router = make_router("/admin/accounts", "accounts", 400, 401, 403, 404, 409, 413, 503)


@router.get(OWN, response_model=FactorStateAnswer)
async def read_second_factor(own_id: OwnId, caller: CurrentCaller, factors: FactorsOfTheApp) -> Answer:
    """Return whether you have a second factor, and how many recovery codes are left."""
    return FactorStateAnswer.model_validate(await factors.read_state(own_id, caller.role))


@router.post(OWN, status_code=status.HTTP_201_CREATED)
async def begin_second_factor(
    own_id: OwnId, body: FactorSetUpBody, own_password: OwnPassword, factors: FactorsOfTheApp
) -> FactorSetUpAnswer:
    """Begin to set a second factor up; it counts once you have sent a code of it."""
    await own_password.check(body.current_password)
    begun = await factors.begin(own_id)
    return FactorSetUpAnswer(secret=begun.secret, app_url=begun.app_url, svg=draw_qr_code(begun.app_url))


@router.put(OWN)
async def confirm_second_factor(
    own_id: OwnId, body: FactorCodeBody, author: SecurityAuthor, factors: FactorsOfTheApp, now: Now
) -> RecoveryCodesAnswer:
    """Turn your second factor on with a code of the app."""
    codes = await factors.confirm(own_id, body.code, now=now, author=author)
    return RecoveryCodesAnswer(recovery_codes=codes)


@router.post(f"{OWN}/recovery-codes", status_code=status.HTTP_201_CREATED)
async def replace_recovery_codes(
    own_id: OwnId, body: FactorCodeBody, author: SecurityAuthor, factors: FactorsOfTheApp, now: Now
) -> RecoveryCodesAnswer:
    """Make new recovery codes, in place of those that are left."""
    codes = await factors.replace_recovery_codes(own_id, body.code, now=now, author=author)
    return RecoveryCodesAnswer(recovery_codes=codes)


@router.post(f"{OWN}/remove", status_code=status.HTTP_204_NO_CONTENT)
async def remove_own_second_factor(  # noqa: PLR0913, PLR0917 - what the framework hands in
    own_id: OwnId,
    caller: CurrentCaller,
    body: FactorCodeBody,
    author: SecurityAuthor,
    factors: FactorsOfTheApp,
    now: Now,
) -> None:
    """Take your second factor off, unless your role needs one."""
    await factors.remove_own(own_id, caller.role, body.code, now=now, author=author)


@router.delete("/{person_id}/second-factor", dependencies=ADMIN_ONLY, status_code=status.HTTP_204_NO_CONTENT)
async def remove_second_factor(
    person_id: UUID, author: SecurityAuthor, pool: Database, factors: FactorsOfTheApp, now: Now
) -> None:
    """Take the second factor off somebody who has lost it."""
    async with pool.acquire() as connection, connection.transaction():
        person = await lock_person(connection, person_id)
    await factors.remove(person.id, now=now, author=author)
