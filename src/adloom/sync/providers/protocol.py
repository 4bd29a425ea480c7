"""The protocol of statistics providers: requests, rows and errors."""

from collections.abc import AsyncIterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import ClassVar, Final, Protocol
from uuid import UUID

import msgspec

from adloom.runtime.settings import Secret
from adloom.sync.figures import Figures
from adloom.sync.words import BudgetType, Level, Platform, Semantics

REASON_LENGTH_MAX: Final = 500


class ProviderError(Exception):
    """Statistics could not be fetched. The message is shown and logged, so it must not contain credentials."""

    is_worth_retrying: ClassVar[bool] = True
    # The metric label of this error.
    outcome: ClassVar[str] = "failed"


class CredentialsExpiredError(ProviderError):
    """The platform rejects the credentials: a user must reconnect the account."""

    is_worth_retrying = False
    outcome = "expired"


class ProviderRefusedError(ProviderError):
    """The platform rejects this request; a retry cannot help."""

    is_worth_retrying = False
    outcome = "refused"


class ThrottledError(ProviderError):
    """The rate limit is reached; retry later."""

    outcome = "throttled"

    def __init__(self, message: str, *, retry_after: timedelta) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ProviderUnavailableError(ProviderError):
    """The platform is temporarily not working."""

    outcome = "unavailable"


class AccountLink(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider needs to know of an ad account."""

    id: UUID
    platform: Platform
    external_id: str | None
    currency: str
    timezone: str
    credentials: Secret | None = None


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign, an ad set or an ad, with its ids and the budget that it shares.

    `above` has the external ids of its parents, the campaign first.
    """

    id: UUID
    external_id: str | None
    budget: Decimal
    budget_type: BudgetType
    shares: int = 1
    above: tuple[str | None, ...] = ()


class StatsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which statistics to fetch: some entities of an account, for a range of days (inclusive)."""

    seller_id: UUID
    account: AccountLink
    level: Level
    entities: Sequence[Entity]
    first: date
    last: date


class StatRow(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one entity and day; a delta names the part of the day that it covers."""

    entity_id: UUID
    external_entity_id: str
    date_start: date
    date_stop: date
    figures: Figures
    part: str = ""


class StatProvider(Protocol):
    """Fetches statistics from a platform."""

    @property
    def platform(self) -> Platform: ...

    @property
    def semantics(self) -> Semantics: ...

    def fetch(self, request: StatsRequest) -> AsyncIterator[Sequence[StatRow]]:
        """Yield rows in pages; entities without statistics may be left out. Raises ProviderError."""
        ...
