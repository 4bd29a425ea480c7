"""Records that banners may name, and what can be wrong with them."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.core.errors import ConflictError, FieldProblem, NotFoundError, ValidationFailedError
from adloom.runtime.http.api.shapes import Name

ReferenceId = int | UUID

ID_MAX: Final = 2**31 - 1


class ReferenceNotFoundError(NotFoundError):
    """No such record, or no such kind of record."""

    code = "REFERENCE_NOT_FOUND"


class ReferenceExistsError(ConflictError):
    """There is a record with this id."""

    code = "REFERENCE_EXISTS"


class BannerSeoNotFoundError(NotFoundError):
    """A banner names an SEO record that is not there."""

    code = "BANNER_SEO_NOT_FOUND"


class ReferenceKind(StrEnum):
    """What a record is of."""

    BRAND = "brand"
    CATEGORY = "category"
    PRODUCT = "product"
    SEO = "seo"


class ReferenceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the shop: the id that it has there, and what people call it."""

    id: Any
    label: Name
    created_at: datetime


def parse_reference_id(kind: ReferenceKind, given: ReferenceId | str, *, field: str) -> ReferenceId:
    """Return an id as records of its kind have it: a UUID of SEO records, an integer of others."""
    try:
        if kind is ReferenceKind.SEO:
            return given if isinstance(given, UUID) else UUID(str(given))
        if isinstance(given, str) and given.isascii() and given.isdecimal():
            given = int(given)
        if isinstance(given, int) and given <= ID_MAX:
            return given
    except ValueError:
        pass
    wanted = "a UUID" if kind is ReferenceKind.SEO else f"an integer from 0 to {ID_MAX}"
    raise ValidationFailedError(
        f"The id of a {kind} is {wanted}.", errors=[FieldProblem(field, f"must be {wanted}")]
    )
