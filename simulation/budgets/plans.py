"""Many short runs, each with troubles of its own: a seed decides what goes wrong, how badly, and on which evening."""

from datetime import UTC, datetime, timedelta
from random import Random  # noqa: TID251 - for its type
from typing import Final

from simulation.budgets.faults import ROUGH_MONEY, MoneyFaultRates
from simulation.budgets.world import MoneyOutcome, MoneyPlan, simulated
from simulation.chance import seeded

SECONDS: Final = 40.0
NEVER: Final = float("inf")
# Midnights before something happens to clocks, and ordinary ones.
MIDNIGHTS: Final = (
    ("UTC", datetime(2026, 11, 16, 0, 0, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 3, 28, 23, 0, tzinfo=UTC)),  # 23 hours follow.
    ("Europe/Berlin", datetime(2026, 3, 29, 22, 0, tzinfo=UTC)),  # 23 hours are over.
    ("America/New_York", datetime(2026, 11, 1, 4, 0, tzinfo=UTC)),  # 25 hours follow.
    ("America/New_York", datetime(2026, 11, 2, 5, 0, tzinfo=UTC)),  # 25 hours are over.
    ("Africa/Cairo", datetime(2026, 4, 23, 22, 0, tzinfo=UTC)),  # There is no midnight.
    ("Asia/Kathmandu", datetime(2026, 11, 15, 18, 15, tzinfo=UTC)),
)


def a_money_plan(seed: int) -> MoneyPlan:
    """Draw what a run is like."""
    chance = seeded(seed, "plan")
    zone, midnight = chance.choice(MIDNIGHTS)
    # Most runs pass midnight, some early and some late.
    starts_at = midnight - timedelta(seconds=chance.choice([1, 10, 20, 30, 7_200]))
    return MoneyPlan(
        seed=seed,
        seconds=SECONDS,
        views_per_second=chance.choice([2.0, 8.0]),
        faults=_some_faults(chance),
        starts_at=starts_at,
        zone=zone,
        campaigns=chance.choice([1, 1, 2, 3, 5, 10]),
        has_payer=chance.random() < 0.8,  # noqa: PLR2004 - mostly
        hold_seconds=chance.choice([3, 10, 30]),
        delivery_processes=chance.randint(1, 4),
        workers=chance.randint(1, 2),
        auctioned=chance.choice([0.0, 0.5, 1.0]),
    )


def simulated_money(seed: int) -> MoneyOutcome:
    """Run a seed's plan."""
    return simulated(a_money_plan(seed))


def _some_faults(chance: Random) -> MoneyFaultRates:
    def some(rate: float) -> float:
        return rate * chance.choice([0.0, 0.1, 1.0, 3.0])

    return MoneyFaultRates(
        refused=some(ROUGH_MONEY.refused),
        answer_lost=some(ROUGH_MONEY.answer_lost),
        hung=some(ROUGH_MONEY.hung),
        late=some(ROUGH_MONEY.late),
        repeated=some(ROUGH_MONEY.repeated),
        readers_forgotten=some(ROUGH_MONEY.readers_forgotten),
        life_seconds_mean=chance.choice([NEVER, 60.0, 20.0, 5.0]),
        outage_seconds_between=chance.choice([NEVER, 60.0, 20.0]),
        outage_seconds_mean=chance.choice([0.5, 2.0, 12.0]),
        clock_seconds_between=chance.choice([NEVER, NEVER, 20.0, 5.0]),
        clock_hours_max=chance.choice([0.001, 0.02, 1.0, 26.0]),
        died=some(ROUGH_MONEY.died),
        mail_lost=some(ROUGH_MONEY.mail_lost),
        mail_repeated=some(ROUGH_MONEY.mail_repeated),
        mail_delayed=some(ROUGH_MONEY.mail_delayed),
        owned_twice=some(ROUGH_MONEY.owned_twice),
        unseen=some(ROUGH_MONEY.unseen),
        seen_late=some(ROUGH_MONEY.seen_late),
        change_seconds_between=chance.choice([NEVER, 10.0, 3.0, 1.0]),
        index_seconds_max=chance.choice([0.0, 0.5, 5.0]),
    )
