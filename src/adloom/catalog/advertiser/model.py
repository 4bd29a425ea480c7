"""An advertiser, and what can be wrong with one."""

from datetime import datetime
from typing import Final

from adloom.core.errors import BadRequestError, NotFoundError
from adloom.core.ids import AdvertiserId
from adloom.resource.soft_delete import SoftDeletable

BLOCKED_SITES_MAX: Final = 1_000


class AdvertiserNotFoundError(NotFoundError):
    """No such advertiser, or it is somebody else."""

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
    name: str
    daily_budget_paisa: int | None
    timezone: str
    blocked_sites: tuple[str, ...]
    created_at: datetime
