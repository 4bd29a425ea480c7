"""Statistics that nobody has measured, for trying things out: the same for the same seller, entity and day."""

import hashlib
import itertools
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Final
from uuid import UUID

from adloom.sync.figures import Figures, compute_ratios
from adloom.sync.jobs import list_days
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
        rows = (row for day in list_days(request.first, request.last) for row in _make_rows(request, day))
        while page := list(itertools.islice(rows, PAGE_ROWS)):
            yield page


def _make_rows(request: StatsRequest, day: date) -> Iterator[StatRow]:
    for entity in request.entities:
        figures = make_figures(
            request.seller_id, entity.id, day, base_spend=compute_base_spend(entity, request.level)
        )
        yield StatRow(
            entity_id=entity.id,
            external_entity_id=entity.external_id or str(entity.id),
            date_start=day,
            date_stop=day,
            figures=figures,
            ratios=compute_ratios(figures),
        )


def compute_base_spend(entity: Entity, level: Level) -> float:
    """Tell what an entity spends on a day, about; an ad has its share of what its ad set has."""
    budget = float(entity.budget)
    daily = budget / LIFETIME_DAYS if entity.budget_type is BudgetType.LIFETIME else budget
    return daily / entity.shares if level is Level.AD else daily


def make_figures(seller_id: UUID, entity_id: UUID, day: date, *, base_spend: float) -> Figures:
    """Make up the figures of an entity on a day.

    The order of the draws and of each multiplication is part of the promise: other languages repeat it.
    """
    draw = Mulberry32(compute_seed(seller_id, entity_id, day)).random
    cents = round_half_up(base_spend * (0.85 + draw() * 0.30) * 100)
    impressions = round_half_up(cents / 100 / CPM * 1000 * _scale_noise(draw()))
    link_clicks = round_half_up(impressions * CTR * _scale_noise(draw()))
    content_views = round_half_up(link_clicks * VIEWS_PER_CLICK * _scale_noise(draw()))
    add_to_cart = round_half_up(content_views * CARTS_PER_VIEW * _scale_noise(draw()))
    checkout_initiated = round_half_up(add_to_cart * CHECKOUTS_PER_CART * _scale_noise(draw()))
    purchases = round_half_up(checkout_initiated * PURCHASES_PER_CHECKOUT * _scale_noise(draw()))
    order_value = ORDER_VALUE_MIN + draw() * ORDER_VALUE_RANGE
    return Figures(
        spend=Decimal(cents).scaleb(-2),
        impressions=impressions,
        link_clicks=link_clicks,
        content_views=content_views,
        add_to_cart=add_to_cart,
        checkout_initiated=checkout_initiated,
        purchases=purchases,
        purchase_value=Decimal(round_half_up(purchases * order_value * 100)).scaleb(-2),
    )


def compute_seed(seller_id: UUID, entity_id: UUID, day: date) -> int:
    """Give the seed: the first 4 bytes of a hash, the highest first."""
    return int.from_bytes(hashlib.sha256(f"{seller_id}:{entity_id}:{day}".encode()).digest()[:4], "big")


def round_half_up(number: float) -> int:
    """Round to a whole number, a half up."""
    return math.floor(number + 0.5)


def _scale_noise(drawn: float) -> float:
    return 0.90 + drawn * 0.20
