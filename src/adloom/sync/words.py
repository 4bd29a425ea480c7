"""The vocabulary of stats sync, as in the API and the tables."""

# pure

import re
from enum import StrEnum
from typing import Final


class Level(StrEnum):
    """The level of statistics."""

    CAMPAIGN = "CAMPAIGN"
    ADSET = "ADSET"
    AD = "AD"


ACCESS_TOKEN: Final = re.compile(r"[!-~]+")  # It becomes part of a header.
META_ACCOUNT: Final = re.compile(r"(act_)?[0-9]{1,50}")  # It becomes a part of an address.


class Platform(StrEnum):
    """The platform of an ad account; each has a provider."""

    MOCK = "mock"
    META = "meta"
    ADLOOM = "adloom"


class EntityStatus(StrEnum):
    """The status of a campaign, an ad set or an ad on its platform."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    ARCHIVED = "ARCHIVED"


class BudgetType(StrEnum):
    """Whether a campaign's budget is per day or for its lifetime."""

    DAILY = "DAILY"
    LIFETIME = "LIFETIME"


class AdSource(StrEnum):
    """The source of a sell page's visitors."""

    META = "META"
    ADLOOM = "ADLOOM"


class Semantics(StrEnum):
    """Whether a row is the day's total so far, or adds a part of the day."""

    SNAPSHOT = "snapshot"
    DELTA = "delta"


# The mock stands in for Meta.
AD_SOURCES: Final = {
    Platform.MOCK: AdSource.META,
    Platform.META: AdSource.META,
    Platform.ADLOOM: AdSource.ADLOOM,
}
