"""Frequency caps. They hang on a banner: its owner owns them, and their change is one of it."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec
from pydantic import Field

from adloom.catalog.banner import banners
from adloom.core.errors import ConflictError
from adloom.core.ids import BannerId, FrequencyCapId
from adloom.resource.access import ADVERTISER
from adloom.resource.changes import IndexedNoun
from adloom.resource.resource import Resource
from adloom.runtime.http.api.shapes import Positive


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


frequency_caps = Resource(
    struct=FrequencyCap,
    name="cap",
    noun="frequency_cap",
    path="/api/v1/admin/frequency/caps",
    tag="frequency caps",
    table_name="frequency_caps",
    owner=ADVERTISER,
    references={"banner_id": banners},
    parents=("banner_id",),
    touches=(IndexedNoun.BANNER, "banner_id"),
    docs={
        "body": "A new cap of a banner.",
        "answer": "A cap.",
        "create": "Add a cap to an ad; it may have several, one for each window.",
        "read": "Read a cap.",
        "change": "Change a cap; counts that are there already count.",
        "delete": "Remove a cap.",
    },
    taken=lambda cap: ConflictError(
        f"The ad has a cap for the window {cap.window} already. Remove it first.", code="FREQUENCY_CAP_EXISTS"
    ),
    outlives_parent=True,
    list_name="frequencyCaps",
    unique_in_parent="window",
)
