"""Builders for stats sync; a test names only what it is about."""

from datetime import date
from decimal import Decimal
from typing import Any

from adloom.core.ids import SystemIds
from adloom.runtime.settings import Secret
from adloom.sync.figures import Figures
from adloom.sync.providers.protocol import AccountLink, Entity, StatRow, StatsRequest
from adloom.sync.words import BudgetType, Level, Platform

DAY = date(2026, 2, 19)
ids = SystemIds()


def an_entity(**given: Any) -> Entity:
    fields: dict[str, Any] = {
        "id": ids.make(),
        "external_id": None,
        "budget": Decimal(2500),
        "budget_type": BudgetType.DAILY,
    }
    return Entity(**(fields | given))


def an_account(**given: Any) -> AccountLink:
    fields: dict[str, Any] = {
        "id": ids.make(),
        "platform": Platform.MOCK,
        "external_id": "1234",
        "currency": "USD",
        "timezone": "UTC",
        "credentials": Secret("a-token-that-nobody-may-see"),
    }
    return AccountLink(**(fields | given))


def a_request(**given: Any) -> StatsRequest:
    first: date = given.get("first", DAY)
    fields: dict[str, Any] = {
        "seller_id": ids.make(),
        "account": an_account(),
        "level": Level.CAMPAIGN,
        "entities": [an_entity()],
        "first": first,
        "last": first,
    }
    return StatsRequest(**(fields | given))


def a_row(entity: Entity, day: date = DAY, *, part: str = "", **figures: Any) -> StatRow:
    made = Figures(**figures)
    return StatRow(
        entity_id=entity.id,
        external_entity_id=entity.external_id or str(entity.id),
        date_start=day,
        date_stop=day,
        figures=made,
        part=part,
    )
