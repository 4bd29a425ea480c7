"""Made-up statistics for trials: always the same for the same seller, entity and day."""

import hashlib
import itertools
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Final
from uuid import UUID

from adloom.sync.figures import Figures
from adloom.sync.jobs import list_days
from adloom.sync.providers.protocol import Entity, StatRow, StatsRequest
from adloom.sync.words import BudgetType, Level, Platform, Semantics

MASK: Final = 0xFFFF_FFFF
STEP: Final = 0x6D2B_79F5
RANGE: Final = 2.0**32


class Mulberry32:
    """mulberry32: a small random generator with a 32-bit seed, easy to repeat in any language."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        assert 0 <= seed <= MASK, "a seed has 32 bits"
        self._state = seed

    def random(self) -> float:
        """Return a number in [0, 1)."""
        state = self._state = (self._state + STEP) & MASK
        mixed = ((state ^ (state >> 15)) * (state | 1)) & MASK
        mixed ^= (mixed + (((mixed ^ (mixed >> 7)) * (mixed | 61)) & MASK)) & MASK
        return ((mixed ^ (mixed >> 14)) & MASK) / RANGE


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
    """Makes up statistics from a seed."""

    platform = Platform.MOCK
    semantics = Semantics.SNAPSHOT

    async def fetch(self, request: StatsRequest) -> AsyncIterator[Sequence[StatRow]]:
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
        )


def compute_base_spend(entity: Entity, level: Level) -> float:
    """Return the approximate daily spend; the ads of an ad set share its budget."""
    budget = float(entity.budget)
    daily = budget / LIFETIME_DAYS if entity.budget_type is BudgetType.LIFETIME else budget
    return daily / entity.shares if level is Level.AD else daily


def make_figures(seller_id: UUID, entity_id: UUID, day: date, *, base_spend: float) -> Figures:
    """Make up the figures of an entity and day.

    The order of draws and multiplications is part of the contract: other languages repeat it.
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
    """Return the first 4 bytes of a hash, big endian."""
    return int.from_bytes(hashlib.sha256(f"{seller_id}:{entity_id}:{day}".encode()).digest()[:4], "big")


def round_half_up(number: float) -> int:
    return math.floor(number + 0.5)


def _scale_noise(drawn: float) -> float:
    return 0.90 + drawn * 0.20
