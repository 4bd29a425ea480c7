"""Which seller a request is for: an advertiser's own account, or the one that an admin names."""

# pure

from uuid import UUID

import msgspec

from adloom.core.errors import NotFoundError, ValidationFailedError, make_field_error
from adloom.core.ids import AdvertiserId
from adloom.resource.access import Scope

FIELD = "sellerId"


class SellerWriter(msgspec.Struct, frozen=True):
    """An authorised client, and the seller in the query of its request."""

    scope: Scope
    named: UUID | None

    def find_scope(self, named: UUID | None = None) -> Scope:
        """Return the scope of one seller; `named` is the seller in the body."""
        names = {name for name in (self.named, named) if name is not None}
        if len(names) > 1:
            raise _make_wrong_error("must be the same in the body and in the address")
        if self.scope.account_id is None and not names:
            raise _make_wrong_error("is required: name the seller")
        if self.scope.account_id is not None and not names <= {self.scope.account_id}:
            # As for everything of another account: it is not said whether there is one.
            raise NotFoundError(
                "There is no such seller: sellerId must be your own account, or left out.",
                code="SELLER_NOT_FOUND",
            )
        return Scope(self.scope.account_id or names.pop())

    def find_owner(self, named: UUID | None = None) -> AdvertiserId:
        seller_id = self.find_scope(named).account_id
        assert seller_id is not None, "a scope of a seller has its account"
        return AdvertiserId(seller_id)


def make_unknown_seller_error() -> ValidationFailedError:
    return _make_wrong_error("names no advertiser")


def _make_wrong_error(message: str) -> ValidationFailedError:
    return make_field_error(FIELD, message)
