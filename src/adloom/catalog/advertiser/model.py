"""An advertiser, and what can be wrong with one."""

from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from adloom.core.errors import BadRequestError, NotFoundError
from adloom.core.ids import AdvertiserId
from adloom.resource.shapes import Domain, Paisa, TimeZone
from adloom.resource.soft_delete import SoftDeletable
from adloom.runtime.http.api.shapes import Name

BLOCKED_SITES_MAX: Final = 1_000


class AdvertiserNotFoundError(NotFoundError):
    """No such advertiser, or the client is another one."""

    code = "ADVERTISER_NOT_FOUND"


class AdvertiserAlreadyDeletedError(BadRequestError):
    """The advertiser is deleted, so it cannot be changed or deleted again."""

    code = "ADVERTISER_ALREADY_DELETED"


class AdvertiserNotDeletedError(BadRequestError):
    """Only what is deleted can be restored."""

    code = "ADVERTISER_NOT_DELETED"


class Advertiser(SoftDeletable, frozen=True, kw_only=True):
    """An account that pays."""

    noun_name = "advertiser"
    already_deleted = AdvertiserAlreadyDeletedError
    not_deleted = AdvertiserNotDeletedError

    id: AdvertiserId
    name: Name
    daily_budget_paisa: Paisa | None = None
    timezone: TimeZone = "UTC"
    blocked_sites: Annotated[tuple[Domain, ...], Field(max_length=BLOCKED_SITES_MAX)] = ()
    created_at: datetime
