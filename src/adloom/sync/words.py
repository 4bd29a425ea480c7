"""The words of stats sync: levels, platforms, states; as they stand in the API and in the tables."""

# pure

from enum import StrEnum
from typing import Final


class Level(StrEnum):
    """What statistics are about."""

    CAMPAIGN = "CAMPAIGN"
    ADSET = "ADSET"
    AD = "AD"


class Platform(StrEnum):
    """Where an ad account is; each has its provider of statistics."""

    MOCK = "mock"
    META = "meta"
    ADLOOM = "adloom"


class EntityStatus(StrEnum):
    """How a campaign, an ad set or an ad stands on its platform."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    ARCHIVED = "ARCHIVED"


class BudgetType(StrEnum):
    """What a campaign's budget is for: each day, or all of them."""

    DAILY = "DAILY"
    LIFETIME = "LIFETIME"


class AdSource(StrEnum):
    """Who brought readers to a sell page."""

    META = "META"
    ADLOOM = "ADLOOM"


class Semantics(StrEnum):
    """What a fetched row says: what its day has come to so far, or what a part of the day has added."""

    SNAPSHOT = "snapshot"
    DELTA = "delta"


# The mock stands in for Meta.
AD_SOURCES: Final = {
    Platform.MOCK: AdSource.META,
    Platform.META: AdSource.META,
    Platform.ADLOOM: AdSource.ADLOOM,
}
