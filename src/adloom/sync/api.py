"""What the routes of stats sync have in common: for whom somebody asks, and how they say it."""

import re
from datetime import date
from typing import Annotated, ClassVar, Final, TypeVar
from uuid import UUID

import msgspec
from fastapi import Depends, Query
from pydantic import AfterValidator, BeforeValidator, Field

from adloom.resource.access import Scope
from adloom.runtime.http.api.dependencies import CurrentActor
from adloom.runtime.http.api.pages import ListQuery
from adloom.runtime.http.api.shapes import Body, Patch, make_pattern_check
from adloom.sync.seller import FIELD, Asker, reader, writer

S = TypeVar("S", bound=msgspec.Struct)

PREFIX: Final = "/api/ads-manager"
DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
YEARS: Final = range(2000, 2100)  # Of which there can be statistics.
WHO: Final = "For whom you ask: required of an admin, an advertiser asks for itself."


def _day(value: object) -> date:
    try:
        day = date.fromisoformat(value) if isinstance(value, str) and DAY.fullmatch(value) else None
    except ValueError:
        day = None
    if day is None or day.year not in YEARS:
        raise ValueError("must be a day like 2026-11-15")
    return day


Day = Annotated[date, BeforeValidator(_day)]
Currency = Annotated[
    str,
    AfterValidator(
        make_pattern_check(r"[A-Z]{3}", "must be a currency of three capitals like USD (ISO 4217)")
    ),
]
SellerId = Annotated[UUID | None, Field(description=WHO)]
_SellerInAddress = Annotated[UUID | None, Query(alias=FIELD, description=WHO)]


class SellerBody(Body):
    """A body that may say for whom it is."""

    seller_id: SellerId = None


class SellerPatch(Patch):
    """Changes, in a body that may say whose thing it is about."""

    # What a body says beside the fields of the thing itself.
    SIDE_STREAM: ClassVar[frozenset[str]] = frozenset({"seller_id"})

    seller_id: SellerId

    @property
    def named_seller(self) -> UUID | None:
        """The seller that the body names; null is none, as if it were left out."""
        return self.seller_id if "seller_id" in self.model_fields_set else None

    def applied_to(self, thing: S, **besides: object) -> S:
        """Change the fields of the thing that were given."""
        own = type(self).model_construct(self.model_fields_set - self.SIDE_STREAM, **self.__dict__)
        return Patch.apply_to(own, thing, **besides)  # pyright: ignore[reportArgumentType] - it passes them on


class SellerListQuery(ListQuery):
    """The query of a list that may say whose it is."""

    seller_id: SellerId = None


def _reads(actor: CurrentActor, seller_id: _SellerInAddress = None) -> Scope:
    return reader(actor, seller_id).scope_of()


def _writes(actor: CurrentActor, seller_id: _SellerInAddress = None) -> Asker:
    return writer(actor, seller_id)


def _acts(actor: CurrentActor, seller_id: _SellerInAddress = None) -> Scope:
    return writer(actor, seller_id).scope_of()


SellerReads = Annotated[Scope, Depends(_reads)]
# Whose body may name the seller too.
SellerWrites = Annotated[Asker, Depends(_writes)]
# Who changes something by a request without a body.
SellerActs = Annotated[Scope, Depends(_acts)]
