"""For which seller a client asks stats sync: an advertiser for its own account, an admin for the one that it names."""

from datetime import date
from typing import Annotated, Final
from uuid import UUID

import msgspec
from fastapi import Depends, Query
from pydantic import AfterValidator, Field

from adloom.core.caller import Role
from adloom.core.errors import NotFoundError, ValidationFailedError, make_field_error
from adloom.core.ids import AdvertiserId
from adloom.resource.access import Scope, require_read, require_write
from adloom.resource.shapes import Day
from adloom.runtime.http.api.dependencies import CurrentCaller
from adloom.runtime.http.api.pages import ListQuery
from adloom.runtime.http.api.shapes import Body

PREFIX: Final = "/api/ads-manager"
FIELD: Final = "sellerId"
YEARS: Final = range(2000, 2100)  # There can be statistics of these.
WHO: Final = "The seller that you ask for: required of an admin, an advertiser asks for itself."


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


def _check_year(day: date) -> date:
    if day.year not in YEARS:
        raise ValueError(f"must be between the years {YEARS.start} and {YEARS.stop - 1}")
    return day


SyncedDay = Annotated[Day, AfterValidator(_check_year)]
SellerId = Annotated[UUID | None, Field(description=WHO)]
_SellerInAddress = Annotated[UUID | None, Query(alias=FIELD, description=WHO)]


class SellerBody(Body):
    """A body that may name the seller."""

    seller_id: SellerId = None


class SellerListQuery(ListQuery):
    """The query of a list that may name the seller."""

    seller_id: SellerId = None


async def require_seller_read(caller: CurrentCaller, seller_id: _SellerInAddress = None) -> Scope:
    """Return the scope of the seller that a client may read for."""
    return SellerWriter(require_read(caller, Role.ADVERTISER), seller_id).find_scope()


async def require_seller_write(caller: CurrentCaller, seller_id: _SellerInAddress = None) -> SellerWriter:
    """Return for which seller a client may write; the body of its request may name the seller too."""
    return SellerWriter(require_write(caller, Role.ADVERTISER), seller_id)


async def _require_seller_write(caller: CurrentCaller, seller_id: _SellerInAddress = None) -> Scope:
    return (await require_seller_write(caller, seller_id)).find_scope()


SellerReads = Annotated[Scope, Depends(require_seller_read)]
SellerWrites = Annotated[SellerWriter, Depends(require_seller_write)]
# For a write without a body.
SellerActs = Annotated[Scope, Depends(_require_seller_write)]
