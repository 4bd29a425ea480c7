"""A frequency cap of a banner, and what can be wrong with one."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec
from pydantic import Field

from adloom.core.errors import ConflictError, NotFoundError
from adloom.core.ids import BannerId, FrequencyCapId
from adloom.runtime.http.api.shapes import Positive


class FrequencyCapNotFoundError(NotFoundError):
    """No such cap, or its banner belongs to another advertiser."""

    code = "FREQUENCY_CAP_NOT_FOUND"


class FrequencyCapExistsError(ConflictError):
    """The banner has a cap of this window already."""

    code = "FREQUENCY_CAP_EXISTS"


class CapWindow(StrEnum):
    """The time over which impressions are counted: calendar units in UTC, weeks from Monday."""

    HOUR = "Hour"
    DAY = "Day"
    WEEK = "Week"
    MONTH = "Month"
    LIFETIME = "Lifetime"


class FrequencyCap(msgspec.Struct, frozen=True, kw_only=True):
    """A banner is not offered to a visitor who has seen it this often in the window."""

    id: FrequencyCapId
    banner_id: Annotated[BannerId, Field(alias="adId")]
    max_impressions_per_user: Positive
    window: CapWindow = CapWindow.DAY
    created_at: datetime
    updated_at: datetime
