"""For which seller somebody asks: an advertiser for itself, an admin for whom it names. Pure."""

from uuid import UUID

import msgspec

from adloom.core.actor import Actor, Role
from adloom.core.errors import FieldProblem, ValidationFailedError
from adloom.core.ids import AdvertiserId
from adloom.resource.access import Scope, require_read, require_write

FIELD = "sellerId"


class Asker(msgspec.Struct, frozen=True):
    """Somebody who may ask, and the seller that the address of the request names."""

    scope: Scope
    named: UUID | None

    def scope_of(self, in_body: UUID | None = None) -> Scope:
        """Tell whose rows are meant: always one seller's."""
        names = {name for name in (self.named, in_body) if name is not None}
        if len(names) > 1:
            raise _wrong("must be the same in the body and in the address")
        if self.scope.account_id is None and not names:
            raise _wrong("is required: say for which seller you ask")
        if self.scope.account_id is not None and not names <= {self.scope.account_id}:
            raise _wrong("must be your own account, or left out")
        return Scope(self.scope.account_id or names.pop())

    def seller_id(self, in_body: UUID | None = None) -> AdvertiserId:
        """Name the seller."""
        seller_id = self.scope_of(in_body).account_id
        assert seller_id is not None, "a scope of a seller has its account"
        return AdvertiserId(seller_id)


def reader(actor: Actor, named: UUID | None) -> Asker:
    """Let somebody in who may read."""
    return Asker(require_read(actor, Role.ADVERTISER), named)


def writer(actor: Actor, named: UUID | None) -> Asker:
    """Let somebody in who may change things."""
    return Asker(require_write(actor, Role.ADVERTISER), named)


def unknown_seller() -> ValidationFailedError:
    """Say that the seller who is named is not there."""
    return _wrong("names no advertiser")


def _wrong(message: str) -> ValidationFailedError:
    return ValidationFailedError(f"{FIELD} {message}.", errors=[FieldProblem(FIELD, message)])
