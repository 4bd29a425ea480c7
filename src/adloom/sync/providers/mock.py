"""Statistics that nobody has measured, for trying things out: the same for the same seller, entity and day."""

import hashlib
import itertools
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Final
from uuid import UUID

from adloom.sync.figures import Figures, ratios_of
from adloom.sync.jobs import days_of
from adloom.sync.mulberry import Mulberry32
from adloom.sync.providers.protocol import Entity, StatRow, StatsRequest
from adloom.sync.words import BudgetType, Level, Platform, Semantics

PAGE_ROWS: Final = 2_000
LIFETIME_DAYS: Final = 30
CPM: Final = 8.50
CTR: Final = 0.020
VIEWS_PER_CLICK: Final = 0.70
CARTS_PER_VIEW: Final = 0.12
CHECKOUTS_PER_CART: Final = 0.50
PURCHASES_PER_CHECKOUT: Final = 0.40
ORDER_VALUE_MIN: Final = 35
ORDER_VALUE_RANGE: Final = 115


class MockProvider:
    """Makes statistics up, from a seed that everything about them follows from."""

    platform = Platform.MOCK
    semantics = Semantics.SNAPSHOT
    requests_per_second = None

    async def fetch(self, request: StatsRequest) -> AsyncIterator[Sequence[StatRow]]:
        """Make up the rows of each day."""
        rows = (row for day in days_of(request.first, request.last) for row in _rows(request, day))
        while page := list(itertools.islice(rows, PAGE_ROWS)):
            yield page


def _rows(request: StatsRequest, day: date) -> Iterator[StatRow]:
    for entity in request.entities:
        figures = mock_figures(
            request.seller_id, entity.id, day, base_spend=base_spend(entity, request.level)
        )
        yield StatRow(
            entity_id=entity.id,
            external_entity_id=entity.external_id or str(entity.id),
            date_start=day,
            date_stop=day,
            figures=figures,
            ratios=ratios_of(figures),
        )


def base_spend(entity: Entity, level: Level) -> float:
    """Tell what an entity spends on a day, about; an ad has its share of what its ad set has."""
    budget = float(entity.budget)
    daily = budget / LIFETIME_DAYS if entity.budget_type is BudgetType.LIFETIME else budget
    return daily / entity.shares if level is Level.AD else daily


def mock_figures(seller_id: UUID, entity_id: UUID, day: date, *, base_spend: float) -> Figures:
    """Make up the figures of an entity on a day.

    The order of the draws and of each multiplication is part of the promise: other languages repeat it.
    """
    draw = Mulberry32(seed_of(seller_id, entity_id, day)).random
    cents = half_up(base_spend * (0.85 + draw() * 0.30) * 100)
    impressions = half_up(cents / 100 / CPM * 1000 * _noise(draw()))
    link_clicks = half_up(impressions * CTR * _noise(draw()))
    content_views = half_up(link_clicks * VIEWS_PER_CLICK * _noise(draw()))
    add_to_cart = half_up(content_views * CARTS_PER_VIEW * _noise(draw()))
    checkout_initiated = half_up(add_to_cart * CHECKOUTS_PER_CART * _noise(draw()))
    purchases = half_up(checkout_initiated * PURCHASES_PER_CHECKOUT * _noise(draw()))
    order_value = ORDER_VALUE_MIN + draw() * ORDER_VALUE_RANGE
    return Figures(
        spend=Decimal(cents).scaleb(-2),
        impressions=impressions,
        link_clicks=link_clicks,
        content_views=content_views,
        add_to_cart=add_to_cart,
        checkout_initiated=checkout_initiated,
        purchases=purchases,
        purchase_value=Decimal(half_up(purchases * order_value * 100)).scaleb(-2),
    )


def seed_of(seller_id: UUID, entity_id: UUID, day: date) -> int:
    """Give the seed: the first 4 bytes of a hash, the highest first."""
    return int.from_bytes(hashlib.sha256(f"{seller_id}:{entity_id}:{day}".encode()).digest()[:4], "big")


def half_up(number: float) -> int:
    """Round to a whole number, a half up."""
    return math.floor(number + 0.5)


def _noise(drawn: float) -> float:
    return 0.90 + drawn * 0.20
