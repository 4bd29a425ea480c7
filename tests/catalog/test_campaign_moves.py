"""Every move of a campaign over HTTP: exactly those of the contract's table."""

import pytest

from tests.support.builders import Json
from tests.support.control import Client, problem

STATUSES = ["draft", "scheduled", "active", "paused", "ended", "cancelled"]
TARGETS = {
    "activate": "active",
    "pause": "paused",
    "end": "ended",
    "cancel": "cancelled",
    "schedule": "scheduled",
    "unschedule": "draft",
}
ALLOWED = {
    "draft": {"schedule", "activate", "cancel"},
    "scheduled": {"activate", "unschedule", "cancel"},
    "active": {"pause", "end", "cancel"},
    "paused": {"activate", "end", "cancel"},
    "ended": set[str](),
    "cancelled": set[str](),
}
WAYS = {
    "draft": [],
    "scheduled": ["schedule"],
    "active": ["activate"],
    "paused": ["activate", "pause"],
    "ended": ["activate", "end"],
    "cancelled": ["cancel"],
}


async def campaign_that_is(admin: Client, status: str) -> Json:
    campaign = await admin.make_campaign(startsAt="2026-12-01T00:00:00Z")
    for move in WAYS[status]:
        answer = await admin.patch(f"/admin/campaigns/{campaign['id']}/{move}")
        assert answer.status_code == 200, answer.text
        campaign = answer.json()
    assert campaign["status"] == status
    return campaign


@pytest.mark.parametrize("status", STATUSES)
async def test_a_campaign_moves_only_as_the_table_allows(status: str, admin: Client) -> None:
    for move, target in TARGETS.items():
        campaign = await campaign_that_is(admin, status)
        path = f"/admin/campaigns/{campaign['id']}"

        answer = await admin.patch(f"{path}/{move}")

        if move in ALLOWED[status]:
            assert answer.json()["status"] == target
        else:
            problem(answer, 400, "CAMPAIGN_INVALID_TRANSITION")
        assert (await admin.get(path)).json()["status"] == (target if move in ALLOWED[status] else status)
