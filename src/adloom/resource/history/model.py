"""A line of the trail as it is read."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what to which thing, when, and what it changed."""

    at: datetime
    subject: str
    role: str
    account_id: UUID | None
    request_id: str | None
    noun: str
    noun_id: str
    owner_id: UUID | None
    action: str
    changes: dict[str, Any]
