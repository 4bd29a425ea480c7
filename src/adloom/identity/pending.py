"""Log-ins that are half done: what the server needs again is signed and kept by the browser, for some minutes."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import jwt
import msgspec

from adloom.core.errors import UnauthenticatedError
from adloom.runtime.auth.access_token import ALGORITHM

LIFETIME: Final = timedelta(minutes=10)


class _Pending(msgspec.Struct, frozen=True):
    kind: str
    exp: int
    data: dict[str, str]


def sign_pending(secret: str, kind: str, data: Mapping[str, str], *, now: datetime) -> str:
    """Sign what is half done. It is no access token: it is signed by a key of its own, and names no role."""
    claims = {"kind": kind, "exp": int((now + LIFETIME).timestamp()), "data": dict(data)}
    return jwt.encode(claims, _derive(secret), algorithm=ALGORITHM)


def read_pending(secret: str, kind: str, signed: str, *, now: datetime) -> dict[str, str]:
    """Return what was signed for the same kind, or raise UnauthenticatedError."""
    try:
        # Time is checked below against `now`: the library would ask the machine's clock.
        payload = jwt.decode(signed, _derive(secret), algorithms=[ALGORITHM], options={"verify_exp": False})
        pending = msgspec.convert(payload, _Pending)
    except (jwt.InvalidTokenError, msgspec.ValidationError) as error:
        raise _make_ended_error() from error
    if pending.kind != kind or now.timestamp() >= pending.exp:
        raise _make_ended_error()
    return pending.data


def _derive(secret: str) -> str:
    return f"{secret} of half done log-ins"


def _make_ended_error() -> UnauthenticatedError:
    return UnauthenticatedError("This took too long, or was begun elsewhere: log in again.")
