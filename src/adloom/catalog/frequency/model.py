"""A frequency cap of a banner, and what can be wrong with one."""

from datetime import datetime
from enum import StrEnum

import msgspec

from adloom.core.errors import ConflictError, NotFoundError
from adloom.core.ids import BannerId, FrequencyCapId


class FrequencyCapNotFoundError(NotFoundError):
    """No such cap, or its banner is somebody else's."""

    code = "FREQUENCY_CAP_NOT_FOUND"


class FrequencyCapExistsError(ConflictError):
    """The banner has a cap of this window already."""

    code = "FREQUENCY_CAP_EXISTS"


class CapWindow(StrEnum):
    """Over which time impressions are counted: of the calendar in UTC, a week from Monday on."""

    HOUR = "Hour"
    DAY = "Day"
    WEEK = "Week"
    MONTH = "Month"
    LIFETIME = "Lifetime"


class FrequencyCap(msgspec.Struct, frozen=True, kw_only=True):
    """A banner is not offered to a reader who has seen it so often in the window."""

    id: FrequencyCapId
    banner_id: BannerId
    max_impressions_per_user: int
    window: CapWindow
    created_at: datetime
    updated_at: datetime
