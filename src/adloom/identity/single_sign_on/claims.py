"""What a provider says of a person, and which role that gives."""

# pure

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adloom.runtime.log_in_settings import RoleGrant


class ProvenPerson(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody whom the provider vouches for; `email` only where it has verified it."""

    issuer: str
    subject: str
    email: str | None
    role_words: tuple[str, ...]


def read_person(claims: Mapping[str, Any], *, issuer: str, role_claim: str | None) -> ProvenPerson:
    email = claims.get("email")
    is_verified = claims.get("email_verified") in (True, "true")
    is_usable = isinstance(email, str) and 0 < len(email) <= 255 and email.count("@") == 1  # noqa: PLR2004 - the column
    return ProvenPerson(
        issuer=issuer,
        subject=str(claims["sub"]),
        email=email if is_usable and is_verified else None,
        role_words=() if role_claim is None else read_words(claims, role_claim),
    )


def read_words(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the words of a claim; a name with dots leads into objects, unless a claim is called so itself."""
    value: Any = claims.get(name)
    if value is None:
        value = claims
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - JSON
    if isinstance(value, str):
        return tuple(value.split())
    return tuple(str(one) for one in value) if isinstance(value, Sequence) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON


def choose_grant(grants: Sequence[RoleGrant], words: Sequence[str]) -> RoleGrant | None:
    """Return the first grant whose word the person has: what stands first wins."""
    return next((grant for grant in grants if grant.word in words), None)
