"""The mock provider: the same figures for the same seller, entity and day, in any language."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from adloom.sync.figures import compute_ratios
from adloom.sync.providers.mock import (
    MockProvider,
    Mulberry32,
    compute_base_spend,
    compute_seed,
    make_figures,
)
from adloom.sync.words import BudgetType, Level
from tests.support.for_each import for_each
from tests.sync.builders import a_request, an_entity

GOLDEN: list[dict[str, Any]] = msgspec.json.decode(
    (Path(__file__).parent.parent / "golden/mock_rows.json").read_bytes()
)
COUNTS = ("impressions", "linkClicks", "contentViews", "addToCart", "checkoutInitiated", "purchases")
RATIOS = ("cpm", "ctr", "cpc", "costPerPurchase", "roas")


def test_the_golden_file_has_fifty_rows() -> None:
    assert len(GOLDEN) == 50


@for_each("row", GOLDEN)
def test_a_row_equals_the_golden_file_of_another_language(row: dict[str, Any]) -> None:
    seller, entity_id, day = UUID(row["sellerId"]), UUID(row["entityId"]), date.fromisoformat(row["date"])
    entity = an_entity(
        id=entity_id,
        budget=Decimal(row["budget"]),
        budget_type=BudgetType(row["budgetType"]),
        shares=row["adsInSet"],
    )

    figures = make_figures(seller, entity_id, day, base_spend=compute_base_spend(entity, Level(row["level"])))

    made = msgspec.to_builtins(figures) | msgspec.to_builtins(compute_ratios(figures))
    made = {msgspec_camel(name): value for name, value in made.items()}
    assert compute_seed(seller, entity_id, day) == row["seed"]
    assert {name: made[name] for name in COUNTS} == {name: row[name] for name in COUNTS}
    for name in ("spend", "purchaseValue", *RATIOS):
        assert Decimal(made[name]) == Decimal(row[name]), name


def test_the_generator_is_mulberry32() -> None:
    draws = Mulberry32(1)

    assert [int(draws.random() * 2**32) for _ in range(3)] == [2693262067, 11749833, 2265367787]


async def test_an_entity_without_an_external_id_is_identified_by_its_own_id() -> None:
    entity = an_entity(external_id=None)

    rows = [row async for page in MockProvider().fetch(a_request(entities=[entity])) for row in page]

    assert [row.external_entity_id for row in rows] == [str(entity.id)]


async def test_there_is_a_row_for_each_entity_and_day() -> None:
    request = a_request(entities=[an_entity(), an_entity()], first=date(2026, 2, 27), last=date(2026, 3, 2))

    rows = [row async for page in MockProvider().fetch(request) for row in page]

    assert len({(row.entity_id, row.date_start) for row in rows}) == len(rows) == 8


def msgspec_camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
