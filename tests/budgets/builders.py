"""Messages of budget actors with defaults, and benches that run one actor: a test names only what it is about."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from adloom.budgets.advertiser import step as advertiser_step
from adloom.budgets.advertiser.state import AdvertiserState
from adloom.budgets.campaign import step as campaign_step
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.messages import (
    AdvertiserMessage,
    CampaignMessage,
    ChargeKind,
    CheckClock,
    ConfigureAdvertiser,
    ConfigureCampaign,
    Confirm,
    LeaseAnswer,
    LeaseUsage,
    MoneyKind,
    MoneyRow,
    SpendReport,
)
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import MICROS_PER_UNIT, Micros
from adloom.runtime.actors.actor import Effect, Persist, Publish, RecordRow, Reply, Tell, Wake
from adloom.schedule.pacing import PacingStrategy

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
ADVERTISER_ID = AdvertiserId(UUID(int=1))
CAMPAIGN_ID = CampaignId(UUID(int=100))
UNIT = Micros(MICROS_PER_UNIT)
SECOND = timedelta(seconds=1)

StructT = TypeVar("StructT", bound=msgspec.Struct)


def a_campaign(**fields: Any) -> ConfigureCampaign:
    """A campaign with 100 units a day and no advertiser."""
    return msgspec.structs.replace(
        ConfigureCampaign(
            version=1,
            campaign_id=CAMPAIGN_ID,
            advertiser_id=None,
            is_running=True,
            daily_budget=Micros(100 * UNIT),
            total_budget=None,
            pacing=PacingStrategy.ACCELERATED,
            timezone="UTC",
            hold_seconds=300,
            is_allotted=False,
        ),
        **fields,
    )


def an_advertiser(**fields: Any) -> ConfigureAdvertiser:
    """An advertiser with 100 units a day."""
    return msgspec.structs.replace(
        ConfigureAdvertiser(
            version=1,
            advertiser_id=ADVERTISER_ID,
            is_active=True,
            daily_budget=Micros(100 * UNIT),
            timezone="UTC",
        ),
        **fields,
    )


def a_usage(**fields: Any) -> LeaseUsage:
    """The first report of a process that asks for one offer of one unit."""
    return msgspec.structs.replace(LeaseUsage(session=1, report=1, lease=0, want=UNIT, cost=UNIT), **fields)


def a_confirm(number: int = 1, **fields: Any) -> Confirm:
    """An impression of one unit, of an offer made at noon without a lease."""
    return msgspec.structs.replace(
        Confirm(
            request_id=RequestId(UUID(int=number)),
            slot=0,
            kind=ChargeKind.IMPRESSION,
            lease=0,
            second=int(NOON.timestamp()),
            amount=UNIT,
            banner_id=BannerId(UUID(int=7)),
            placement_id=PlacementId(UUID(int=8)),
            occurred_at=NOON,
        ),
        **fields,
    )


def a_report(**fields: Any) -> SpendReport:
    """The first report of a campaign that has spent nothing and asks for nothing."""
    return msgspec.structs.replace(
        SpendReport(
            campaign_id=CAMPAIGN_ID,
            incarnation=1,
            sequence=1,
            day=NOON.date(),
            spent_by_day={},
            committed=Micros(0),
            target=Micros(0),
            cost=UNIT,
        ),
        **fields,
    )


class Bench:
    """Runs one actor step by step, and has the effects of the last step."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now
        self.chance = random.Random(1)  # noqa: S311 - steps do not use it
        self.effects: tuple[Effect, ...] = ()  # Of the last step.

    @property
    def second(self) -> int:
        return int(self.now.timestamp())

    @property
    def woken_at(self) -> datetime | None:
        return next(effect.at for effect in self.effects if isinstance(effect, Wake))

    @property
    def is_persisted(self) -> bool:
        return any(isinstance(effect, Persist | RecordRow) for effect in self.effects)

    def published(self, kind: type[StructT]) -> list[StructT]:
        return [
            effect.message
            for effect in self.effects
            if isinstance(effect, Publish) and isinstance(effect.message, kind)
        ]

    def sent(self, kind: type[StructT]) -> list[StructT]:
        return [
            effect.message
            for effect in self.effects
            if isinstance(effect, Tell) and isinstance(effect.message, kind)
        ]

    def recorded(self, kind: type[StructT]) -> list[StructT]:
        return [
            effect.row
            for effect in self.effects
            if isinstance(effect, RecordRow) and isinstance(effect.row, kind)
        ]

    def replied(self) -> msgspec.Struct:
        return next(effect.message for effect in self.effects if isinstance(effect, Reply))


class CampaignBench(Bench):
    """One campaign."""

    def __init__(self, config: ConfigureCampaign | None = None, now: datetime = NOON) -> None:
        super().__init__(now)
        self.state = CampaignState(incarnation=1)
        self.offers = 0
        self.rows: list[MoneyRow] = []
        self.take(config or a_campaign())

    def take(self, message: CampaignMessage, *, after: timedelta = timedelta()) -> None:
        """Process a message, after some time."""
        self.now += after
        self.state, self.effects = campaign_step.step(self.state, message, self.now, self.chance)
        self.rows += self.recorded(MoneyRow)

    def wait(self, seconds: float) -> None:
        """Let time pass, and wake the campaign at its timers."""
        until = self.now + timedelta(seconds=seconds)
        while (at := self.woken_at) is not None and at <= until:
            self.now = max(self.now, at)
            self.take(CheckClock())
        self.now = until

    def answered(self, **usage: Any) -> LeaseAnswer:
        """Send a report, and return the answer."""
        self.take(a_usage(**usage))
        [answer] = self.published(LeaseAnswer)
        return answer

    def offered(self, lease: int = 0, amount: Micros = UNIT) -> Confirm:
        """Make an offer now, and return its confirm."""
        self.offers += 1
        return a_confirm(self.offers, lease=lease, second=self.second, amount=amount, occurred_at=self.now)

    @property
    def charged(self) -> int:
        return sum(row.amount for row in self.rows if row.kind is MoneyKind.CHARGE)


class AdvertiserBench(Bench):
    """One advertiser."""

    def __init__(self, config: ConfigureAdvertiser | None = None, now: datetime = NOON) -> None:
        super().__init__(now)
        self.state = AdvertiserState()
        self.take(config or an_advertiser())

    def take(self, message: AdvertiserMessage, *, after: timedelta = timedelta()) -> None:
        """Process a message, after some time."""
        self.now += after
        self.state, self.effects = advertiser_step.step(self.state, message, self.now, self.chance)
