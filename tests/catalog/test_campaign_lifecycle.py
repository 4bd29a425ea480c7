"""The statuses of a campaign and the moves between them."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.catalog.campaign.model import CampaignStatus, CampaignTransitionError
from adloom.core.errors import BadRequestError, ConflictError
from tests.support.builders import NOON, a_campaign
from tests.support.for_each import for_each

DRAFT, SCHEDULED, ACTIVE, PAUSED, ENDED, CANCELLED = CampaignStatus
FINAL = {ENDED, CANCELLED}
LATER = NOON + timedelta(hours=1)

# The contract's own table, written a second time, so that an error in one of them shows.
TABLE = {
    (DRAFT, SCHEDULED),
    (DRAFT, ACTIVE),
    (DRAFT, CANCELLED),
    (SCHEDULED, ACTIVE),
    (SCHEDULED, DRAFT),
    (SCHEDULED, CANCELLED),
    (ACTIVE, PAUSED),
    (ACTIVE, ENDED),
    (ACTIVE, CANCELLED),
    (PAUSED, ACTIVE),
    (PAUSED, ENDED),
    (PAUSED, CANCELLED),
}


@for_each("before", CampaignStatus)
@for_each("after", CampaignStatus)
def test_a_move_is_allowed_if_it_is_in_the_table(before: CampaignStatus, after: CampaignStatus) -> None:
    campaign = a_campaign(status=before, starts_at=NOON)

    if (before, after) in TABLE:
        moved = campaign.moved_to(after, now=LATER)
        assert (moved.status, moved.updated_at) == (after, LATER)
    else:
        with pytest.raises(CampaignTransitionError):
            campaign.moved_to(after, now=LATER)


@given(st.lists(st.sampled_from(CampaignStatus), max_size=20))
def test_no_sequence_of_moves_leaves_a_final_status(targets: list[CampaignStatus]) -> None:
    campaign = a_campaign(starts_at=NOON)

    for target in targets:
        before = campaign.status
        try:
            campaign = campaign.moved_to(target, now=LATER)
        except CampaignTransitionError:
            assert (before, target) not in TABLE
        else:
            assert before not in FINAL


def test_scheduling_sets_new_dates_or_keeps_the_old_ones() -> None:
    campaign = a_campaign(starts_at=NOON)

    scheduled = campaign.scheduled(starts_at=None, ends_at=LATER, now=NOON)

    assert (scheduled.status, scheduled.starts_at, scheduled.ends_at) == (SCHEDULED, NOON, LATER)


def test_scheduling_needs_a_start() -> None:
    with pytest.raises(BadRequestError, match="needs a startsAt"):
        a_campaign().scheduled(starts_at=None, ends_at=LATER, now=NOON)


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
