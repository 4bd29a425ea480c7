"""Things that are deleted softly: they stay in the catalog, out of sight, and can be restored."""

from datetime import datetime
from typing import ClassVar, Self

import msgspec

from adloom.core.errors import BadRequestError


class SoftDeletable(msgspec.Struct, frozen=True, kw_only=True):
    """A thing with a moment of its deletion; a noun names itself and its errors."""

    noun_name: ClassVar[str]
    already_deleted: ClassVar[type[BadRequestError]]
    not_deleted: ClassVar[type[BadRequestError]]

    updated_at: datetime
    deleted_at: datetime | None

    def present(self) -> Self:
        """Give the thing itself, if it is not deleted: only then it can be changed."""
        if self.deleted_at is not None:
            raise self.already_deleted(f"The {self.noun_name} is deleted. Restore it first.")
        return self

    def deleted(self, now: datetime) -> Self:
        """Give the thing as deleted."""
        return msgspec.structs.replace(self.present(), deleted_at=now, updated_at=now)

    def restored(self, now: datetime) -> Self:
        """Give the thing as it was before it was deleted."""
        if self.deleted_at is None:
            raise self.not_deleted(f"The {self.noun_name} is not deleted, so there is nothing to restore.")
        return msgspec.structs.replace(self, deleted_at=None, updated_at=now)
