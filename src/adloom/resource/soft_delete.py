"""Soft deletion: a deleted row stays, out of sight, and can be restored."""

# pure

from datetime import datetime
from typing import ClassVar, Self

import msgspec

from adloom.core.errors import AdloomError, ConflictError


class SoftDeletable(msgspec.Struct, frozen=True, kw_only=True):
    """A thing with a moment of its deletion; its noun is in sentences and codes."""

    noun_name: ClassVar[str]
    not_deleted_error: ClassVar[type[AdloomError]] = ConflictError

    updated_at: datetime
    deleted_at: datetime | None

    def require_present(self) -> Self:
        """Return the thing, or raise where it is deleted: then it cannot be changed."""
        if self.deleted_at is not None:
            raise self._refuse_deleted("is deleted. Restore it first.")
        return self

    def deleted(self, now: datetime) -> Self:
        """Return the thing as deleted; raises where it was already."""
        if self.deleted_at is not None:
            raise self._refuse_deleted("is deleted already, so there is nothing to delete.")
        return msgspec.structs.replace(self, deleted_at=now, updated_at=now)

    def restored(self, now: datetime) -> Self:
        """Return the thing as not deleted; raises where it was not."""
        if self.deleted_at is None:
            raise self.not_deleted_error(
                f"The {self.noun_name} is not deleted, so there is nothing to restore.",
                code=f"{self.noun_name.upper()}_NOT_DELETED",
            )
        return msgspec.structs.replace(self, deleted_at=None, updated_at=now)

    def _refuse_deleted(self, what: str) -> ConflictError:
        return ConflictError(f"The {self.noun_name} {what}", code=f"{self.noun_name.upper()}_ALREADY_DELETED")
