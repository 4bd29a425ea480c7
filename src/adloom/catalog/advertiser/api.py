"""The daily budget of an advertiser, on a route of its own."""

from datetime import datetime

import msgspec

from adloom.catalog.advertiser.model import Advertiser
from adloom.catalog.advertiser.resource import advertisers
from adloom.resource.api import add_change_route, build_router
from adloom.resource.shapes import Paisa
from adloom.runtime.http.api.shapes import Body


class BudgetBody(Body):
    """What an advertiser spends a day at most; null for no limit."""

    daily_budget_paisa: Paisa | None


def _set_budget(advertiser: Advertiser, body: BudgetBody, now: datetime) -> Advertiser:
    return msgspec.structs.replace(
        advertiser.present(), daily_budget_paisa=body.daily_budget_paisa, updated_at=now
    )


router = build_router(advertisers)
add_change_route(
    router,
    advertisers,
    "budget",
    _set_budget,
    body=BudgetBody,
    method="PUT",
    name="set_budget",
    description="Set what an advertiser spends a day at most.",
)
