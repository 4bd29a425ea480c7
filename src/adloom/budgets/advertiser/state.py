"""The state of an advertiser's daily budget."""

# pure

from datetime import date, datetime
from typing import Final

import msgspec

from adloom.budgets.messages import ConfigureAdvertiser
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.core.money import Micros

NOTHING: Final = Micros(0)


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """One campaign's share of the advertiser's day."""

    incarnation: int
    sequence: int
    day: date
    spent_by_day: dict[date, int]
    committed: Micros
    allotted: Micros
    target: Micros
    cost: Micros

    def get_spent(self, day: date) -> int:
        return self.spent_by_day.get(day, 0)

    def get_allotted(self, day: date) -> int:
        return self.allotted if day == self.day else 0


class AdvertiserStatus(msgspec.Struct, frozen=True, kw_only=True, tag="standing.v1"):
    """The reply to `AskBudget`."""

    advertiser_id: AdvertiserId
    day: date
    daily_budget: Micros | None
    spent: Micros
    committed: Micros
    allotted: Micros


class AdvertiserState(msgspec.Struct, frozen=True, kw_only=True):
    """What an advertiser's campaigns have spent and been allotted today."""

    config: ConfigureAdvertiser | None = None
    day: date = date.min
    known_from: date | None = None  # Slices have what was spent on this day and later.
    slices: dict[CampaignId, Slice] = {}
    # Of today, over all slices: kept, because an advertiser may have thousands of campaigns.
    spent: Micros = NOTHING
    allotted: Micros = NOTHING
    cost_max: Micros = NOTHING  # Of an offer of any campaign, as reported today.
    waiting: tuple[CampaignId, ...] = ()  # Turned away with readers waiting; the first is the next.
    asked_back_at: datetime | None = None
    is_exhausted: bool = False

    @property
    def configured(self) -> ConfigureAdvertiser:
        """The configuration; an advertiser without one handles no message."""
        assert self.config is not None
        return self.config

    @property
    def committed(self) -> Micros:
        return Micros(sum(one.committed for one in self.slices.values() if one.day == self.day))

    def get_spent(self, day: date) -> Micros:
        if day == self.day:
            return self.spent
        return Micros(sum(one.get_spent(day) for one in self.slices.values()))


def make_advertiser_state(key: str, now: datetime) -> AdvertiserState:
    del key, now
    return AdvertiserState()


def build_status(state: AdvertiserState) -> AdvertiserStatus:
    return AdvertiserStatus(
        advertiser_id=state.configured.advertiser_id,
        day=state.day,
        daily_budget=state.configured.daily_budget,
        spent=state.spent,
        committed=state.committed,
        allotted=state.allotted,
    )
