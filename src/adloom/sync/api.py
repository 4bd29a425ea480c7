"""What the routes of stats sync share: for which seller a client asks, and how it names it."""

from datetime import date
from typing import Annotated, Final
from uuid import UUID

from fastapi import Depends, Query
from pydantic import AfterValidator, Field

from adloom.core.caller import Role
from adloom.resource.access import Scope, require_read, require_write
from adloom.resource.shapes import Day
from adloom.runtime.http.api.dependencies import CurrentCaller
from adloom.runtime.http.api.pages import ListQuery
from adloom.runtime.http.api.shapes import Body
from adloom.sync.seller import FIELD, SellerWriter

PREFIX: Final = "/api/ads-manager"
YEARS: Final = range(2000, 2100)  # There can be statistics of these.
WHO: Final = "The seller that you ask for: required of an admin, an advertiser asks for itself."


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


def require_seller_read(caller: CurrentCaller, seller_id: _SellerInAddress = None) -> Scope:
    """Return the scope of the seller that a client may read for."""
    return SellerWriter(require_read(caller, Role.ADVERTISER), seller_id).find_scope()


def require_seller_write(caller: CurrentCaller, seller_id: _SellerInAddress = None) -> SellerWriter:
    """Return for which seller a client may write; the body of its request may name the seller too."""
    return SellerWriter(require_write(caller, Role.ADVERTISER), seller_id)


def _require_seller_write(caller: CurrentCaller, seller_id: _SellerInAddress = None) -> Scope:
    return require_seller_write(caller, seller_id).find_scope()


SellerReads = Annotated[Scope, Depends(require_seller_read)]
SellerWrites = Annotated[SellerWriter, Depends(require_seller_write)]
# For a write without a body.
SellerActs = Annotated[Scope, Depends(_require_seller_write)]
