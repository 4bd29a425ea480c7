"""One entry of the audit trail: who did what, to which row, and what it changed."""

from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.core.caller import ACCOUNT_ROLES, Caller, Role

SYSTEM_ROLE: Final = "system"
# The nouns whose entries an account of a role reads, if they are about its own rows; declarations fill it. An id may be
# that of an advertiser and of a publisher at once, so an account reads nothing of other nouns.
OWNED_NOUNS: Final[dict[Role, list[str]]] = {role: [] for role in ACCOUNT_ROLES}


class Author(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes: the caller of a request, or a part of the system."""

    subject: str
    role: str
    account_id: UUID | None = None
    request_id: str | None = None
    network: str | None = None


def build_author(caller: Caller, request_id: str | None, network: str | None = None) -> Author:
    return Author(
        subject=caller.subject,
        role=caller.role.value,
        account_id=caller.account_id,
        request_id=request_id,
        network=network,
    )


def make_system_author(part: str) -> Author:
    """Make the author of what a part of the system writes by itself: a job, an import at the start."""
    return Author(subject=f"system:{part}", role=SYSTEM_ROLE)


class AuditSubject(msgspec.Struct, frozen=True):
    """The thing that an entry is about; `owner_id` is the account that it belongs to."""

    noun: str
    noun_id: str
    owner_id: UUID | None


class NewAuditEntry(msgspec.Struct, frozen=True):
    """What was done to a thing; `changes` has `{"from", "to"}` by field."""

    about: AuditSubject
    action: str
    changes: dict[str, Any]
