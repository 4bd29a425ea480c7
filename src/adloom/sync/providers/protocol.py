"""What a provider of statistics is asked, what it answers, and how it may fail."""

from collections.abc import AsyncIterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import ClassVar, Final, Protocol
from uuid import UUID

import msgspec

from adloom.runtime.settings import Secret
from adloom.sync.figures import Figures, Ratios
from adloom.sync.words import BudgetType, Level, Platform, Semantics

REASON_LENGTH_MAX: Final = 500


class ProviderError(Exception):
    """Statistics could not be fetched; the message may be shown and logged, so it has no credentials in it."""

    is_worth_retrying: ClassVar[bool] = True
    # What it is called where fetches are counted.
    outcome: ClassVar[str] = "failed"


class CredentialsExpiredError(ProviderError):
    """The platform no longer takes the credentials: somebody must connect the account again."""

    is_worth_retrying = False
    outcome = "expired"


class ProviderRefusedError(ProviderError):
    """The platform will not answer this question, however often it is asked."""

    is_worth_retrying = False
    outcome = "refused"


class ThrottledError(ProviderError):
    """We have asked too much; come back later."""

    outcome = "throttled"

    def __init__(self, message: str, *, retry_after: timedelta) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ProviderUnavailableError(ProviderError):
    """The platform does not answer as it should, for now."""

    outcome = "unavailable"


class AccountLink(msgspec.Struct, frozen=True, kw_only=True):
    """An ad account as a provider needs to know it."""

    id: UUID
    platform: Platform
    external_id: str | None
    currency: str
    timezone: str
    credentials: Secret | None = None


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign, an ad set or an ad: who it is, here and outside, and the budget that it has a share of.

    `above` are the external ids of what it belongs to, its campaign first.
    """

    id: UUID
    external_id: str | None
    budget: Decimal
    budget_type: BudgetType
    shares: int = 1
    above: tuple[str | None, ...] = ()


class StatsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which statistics are wanted: of some entities of an account, for some days, both included."""

    seller_id: UUID
    account: AccountLink
    level: Level
    entities: Sequence[Entity]
    first: date
    last: date


class StatRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a platform says of an entity and a day; a delta names the part of the day that it adds."""

    entity_id: UUID
    external_entity_id: str
    date_start: date
    date_stop: date
    figures: Figures
    ratios: Ratios
    part: str = ""


class StatProvider(Protocol):
    """Fetches statistics from a platform."""

    @property
    def platform(self) -> Platform:
        """The platform that it speaks with."""
        ...

    @property
    def semantics(self) -> Semantics:
        """What its rows say."""
        ...

    @property
    def requests_per_second(self) -> float | None:
        """How often it asks an account at most; None where nobody is asked."""
        ...

    def fetch(self, request: StatsRequest) -> AsyncIterator[Sequence[StatRow]]:
        """Fetch rows, some at a time; what has no statistics may be left out. Raises ProviderError."""
        ...
