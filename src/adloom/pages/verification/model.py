"""The proof that a site belongs to its publisher, and what a check of it changes."""

# pure

from datetime import datetime, timedelta
from typing import Final

import msgspec

from adloom.core.errors import ConflictError
from adloom.core.ids import SiteId

PATH: Final = "/.well-known/adloom.txt"
# Others may have lines of their own in the file.
BYTES_MAX: Final = 64 * 1024
RECHECKED_AFTER: Final = timedelta(days=7)
# A site that fails is looked at again soon: a server may have been away for a night.
FAILED_RECHECKED_AFTER: Final = timedelta(days=1)
FAILURES_MAX: Final = 3
REASON_CHARACTERS_MAX: Final = 500


class SiteNotVerifiedError(ConflictError):
    """The file is not there, or does not have the token; the message says which."""

    code = "SITE_NOT_VERIFIED"


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a site's proof. `failures` are those in a row; a forced one is an admin's word, and not checked."""

    site_id: SiteId
    token: str
    domain: str
    is_forced: bool = False
    failures: int = 0
    reason: str | None = None
    checked_at: datetime | None = None
    withdrawn_at: datetime | None = None
    created_at: datetime

    @property
    def url(self) -> str:
        return locate_file(self.domain)

    def proven(self, *, now: datetime, is_forced: bool = False) -> "Verification":
        return msgspec.structs.replace(
            self, is_forced=is_forced, failures=0, reason=None, checked_at=now, withdrawn_at=None
        )

    def failed(self, reason: str, *, now: datetime, is_verified: bool) -> "Verification":
        """Return the state after a failed check; a verified site is given some chances."""
        failures = self.failures + 1
        is_withdrawn = is_verified and failures >= FAILURES_MAX
        return msgspec.structs.replace(
            self,
            failures=failures,
            reason=reason[:REASON_CHARACTERS_MAX],
            checked_at=now,
            withdrawn_at=now if is_withdrawn else self.withdrawn_at,
        )


def locate_file(domain: str) -> str:
    return f"https://{domain}{PATH}"


def find_mistake(status: int, body: bytes, token: str) -> str | None:
    """Return why an answer does not prove the site, or None if one of its lines is the token."""
    if status != 200:  # noqa: PLR2004 - success
        return f"The server answers {status}."
    lines = [line.strip() for line in body.decode("utf-8-sig", "replace").splitlines()]
    if token in lines:
        return None
    if not any(lines):
        return "The file is empty."
    return "The file does not have the token on a line of its own."
