"""What the audit trail records of a change."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.catalog.campaign.model import CampaignStatus
from adloom.resource.audit.difference import (
    CUT,
    HIDDEN,
    VALUE_LENGTH_MAX,
    describe_change,
    describe_creation,
    describe_deletion,
    find_changed_fields,
    name_action,
)
from tests.support.builders import NOON, a_campaign
from tests.support.for_each import for_each


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    """A struct with a field of each kind that matters here."""

    short_text: str | None = None
    tags: tuple[str, ...] = ()
    is_active: bool = True
    password_hash: str = ""
    updated_at: int = 0


things = st.builds(
    Thing,
    short_text=st.none() | st.text(max_size=5),
    tags=st.lists(st.text(max_size=3), max_size=2).map(tuple),
    is_active=st.booleans(),
    updated_at=st.integers(),
)


def test_a_change_has_only_the_differing_fields_by_their_api_names() -> None:
    changes = describe_change(Thing(short_text="a"), Thing(short_text="b", updated_at=7))

    assert changes == {"shortText": {"from": "a", "to": "b"}}


def test_a_creation_lists_all_fields_and_a_deletion_the_old_ones() -> None:
    thing = Thing(short_text="a")

    assert describe_creation(thing)["shortText"] == {"from": None, "to": "a"}
    assert describe_deletion(thing)["shortText"] == {"from": "a", "to": None}
    assert "shortText" not in describe_creation(Thing())


def test_secrets_stay_out_of_the_trail() -> None:
    changes = describe_change(Thing(password_hash="old"), Thing(password_hash="new"))

    assert changes == {"passwordHash": {"from": HIDDEN, "to": HIDDEN}}


@pytest.mark.parametrize(
    "thing", [Thing(short_text="x" * 100_000), Thing(tags=("x" * 90,) * 1_000)], ids=["text", "list"]
)
def test_a_long_value_is_truncated(thing: Thing) -> None:
    changes = describe_creation(thing)

    longest = max((str(change["to"]) for change in changes.values()), key=len)
    assert len(longest) == VALUE_LENGTH_MAX + len(CUT)
    assert longest.endswith(CUT)


@given(things, things)
def test_a_difference_names_exactly_the_fields_that_differ(before: Thing, after: Thing) -> None:
    changes = describe_change(before, after)

    assert len(changes) == len(find_changed_fields(before, after))
    assert all(change["from"] != change["to"] for change in changes.values())
    assert describe_change(before, before) == {}


@for_each(
    ("before", "after", "action"),
    [
        (a_campaign(), a_campaign(deleted_at=NOON), "delete"),
        (a_campaign(deleted_at=NOON), a_campaign(), "restore"),
        (Thing(is_active=False), Thing(is_active=True), "activate"),
        (Thing(is_active=True), Thing(is_active=False), "deactivate"),
        (Thing(is_active=True), Thing(is_active=False, short_text="a"), "update"),
        *(
            (a_campaign(status=CampaignStatus.SCHEDULED), a_campaign(status=status), action)
            for status, action in [
                (CampaignStatus.DRAFT, "unschedule"),
                (CampaignStatus.ACTIVE, "activate"),
                (CampaignStatus.PAUSED, "pause"),
                (CampaignStatus.ENDED, "end"),
                (CampaignStatus.CANCELLED, "cancel"),
            ]
        ),
        (a_campaign(), a_campaign(status=CampaignStatus.SCHEDULED), "schedule"),
    ],
)
def test_an_action_is_named_by_what_it_changed(before: Any, after: Any, action: str) -> None:
    assert name_action(before, after) == action
