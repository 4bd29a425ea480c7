"""The statuses of a campaign and the moves between them."""

from datetime import datetime, timedelta

import pytest

from adloom.catalog.campaign.model import CampaignStatus
from adloom.core.errors import BadRequestError, ConflictError
from tests.support.builders import NOON, a_campaign

DRAFT, SCHEDULED, ACTIVE, PAUSED, ENDED, CANCELLED = CampaignStatus
LATER = NOON + timedelta(hours=1)


def test_scheduling_sets_new_dates_or_keeps_the_old_ones() -> None:
    campaign = a_campaign(starts_at=NOON)

    scheduled = campaign.scheduled(starts_at=None, ends_at=LATER, now=NOON)

    assert (scheduled.status, scheduled.starts_at, scheduled.ends_at) == (SCHEDULED, NOON, LATER)


def test_scheduling_needs_a_start() -> None:
    with pytest.raises(BadRequestError, match="needs a startsAt"):
        a_campaign().scheduled(starts_at=None, ends_at=LATER, now=NOON)


@pytest.mark.parametrize("before", [DRAFT, SCHEDULED, PAUSED])
def test_a_campaign_whose_end_has_passed_does_not_begin(before: CampaignStatus) -> None:
    campaign = a_campaign(status=before, starts_at=NOON - timedelta(hours=1), ends_at=NOON)

    with pytest.raises(BadRequestError, match="endsAt has passed") as refused:
        campaign.moved_to(ACTIVE, now=NOON)

    assert [problem.field for problem in refused.value.errors] == ["endsAt"]
    assert campaign.moved_to(CANCELLED, now=NOON).status is CANCELLED


def test_a_campaign_whose_end_has_passed_is_not_scheduled() -> None:
    campaign = a_campaign(starts_at=NOON - timedelta(hours=2))

    with pytest.raises(BadRequestError, match="endsAt has passed"):
        campaign.scheduled(starts_at=None, ends_at=NOON - timedelta(hours=1), now=NOON)


@pytest.mark.parametrize("ends_at", [NOON, NOON - timedelta(seconds=1)])
def test_a_campaign_ends_after_it_starts(ends_at: datetime) -> None:
    with pytest.raises(BadRequestError, match="endsAt must be after"):
        a_campaign(starts_at=NOON, ends_at=ends_at).with_dates_checked()


def test_a_deleted_campaign_cannot_be_moved_or_deleted_again() -> None:
    campaign = a_campaign(deleted_at=NOON)

    with pytest.raises(ConflictError, match="Restore it first"):
        campaign.moved_to(ACTIVE, now=LATER)
    with pytest.raises(ConflictError, match="nothing to delete"):
        campaign.deleted(LATER)


def test_only_a_deleted_campaign_can_be_restored() -> None:
    assert a_campaign(deleted_at=NOON).restored(LATER).deleted_at is None
    with pytest.raises(ConflictError, match="nothing to restore"):
        a_campaign().restored(LATER)
