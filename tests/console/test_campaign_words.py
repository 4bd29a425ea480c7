"""What a campaign does now, and when its money is gone, in words."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adloom.console.words.campaign_words import (
    describe_campaign_status,
    describe_empty,
    describe_missing,
    describe_missing_bid,
    describe_moment,
    describe_spent,
)
from tests.support.for_each import for_each

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)


def a_campaign(status: str = "active", **fields: Any) -> dict[str, Any]:
    return {
        "status": status,
        "startsAt": None,
        "endsAt": None,
        "timezone": "UTC",
        "deletedAt": None,
        **fields,
    }


@for_each(
    ("campaign", "text", "kind"),
    [
        (a_campaign(), "Active", "good"),
        (a_campaign(startsAt="2026-11-18T00:00:00Z"), "Starts tomorrow", "info"),
        (a_campaign(startsAt="2026-11-17T16:40:00Z"), "Starts today at 16:40", "info"),
        (a_campaign("scheduled", startsAt="2026-11-20T00:00:00Z"), "Starts in 3 days", "info"),
        (a_campaign(startsAt="2026-12-25T00:00:00Z"), "Starts on 25 December", "info"),
        (a_campaign(startsAt="2027-01-02T00:00:00Z"), "Starts on 2 January 2027", "info"),
        (a_campaign(startsAt="2026-11-01T00:00:00Z"), "Active", "good"),
        (a_campaign(endsAt="2026-11-17T23:00:00Z"), "Ends today at 23:00", "good"),
        (a_campaign(endsAt="2026-11-17T11:00:00Z"), "Over", ""),
        (a_campaign("paused", startsAt="2026-11-18T00:00:00Z"), "Paused", "warn"),
        (a_campaign("draft", startsAt="2026-11-18T00:00:00Z"), "Draft", ""),
        (a_campaign("scheduled"), "Scheduled", "info"),
        (a_campaign(deletedAt="2026-11-01T00:00:00Z"), "Deleted", "bad"),
    ],
)
def test_the_status_in_words_knows_the_dates(campaign: dict[str, Any], text: str, kind: str) -> None:
    assert describe_campaign_status(campaign, now=NOW) == (text, kind)


def test_words_follow_the_zone_of_the_person() -> None:
    soon = a_campaign(startsAt="2026-11-17T20:00:00Z")
    figures = {"dailySpentAt": "2026-11-17T20:10:00Z", "totalSpentAt": None}

    assert describe_campaign_status(soon, now=NOW).text == "Starts today at 20:00"
    assert describe_campaign_status(soon, now=NOW, zone="Asia/Kolkata").text == "Starts tomorrow"
    assert describe_spent(figures, zone="Asia/Kolkata", now=NOW) == [
        "The day's budget is spent by about 01:40 tomorrow."
    ]


def test_tomorrow_is_tomorrow_in_the_campaigns_zone() -> None:
    late = datetime(2026, 11, 17, 22, 30, tzinfo=UTC)  # Half past eleven in Berlin.

    assert describe_moment(late + timedelta(hours=1), "Europe/Berlin", late) == "tomorrow"
    assert describe_moment(late + timedelta(hours=1), "UTC", late) == "today at 23:30"


@for_each(
    ("daily", "total", "sentences"),
    [
        (None, None, []),
        ("2026-11-17T15:40:00Z", None, ["The day's budget is spent by about 16:40 today."]),
        (NOW, None, ["The day's budget is spent."]),
        (None, "2026-11-24T09:00:00Z", ["The total budget is spent by about 24 November."]),
        (None, "2026-11-17T15:40:00Z", ["The total budget is spent by about 16:40 today."]),
        (None, "2027-02-01T09:00:00Z", ["The total budget is spent by about 1 February 2027."]),
        (None, NOW, ["The total budget is spent."]),
    ],
)
def test_when_the_budgets_are_spent_is_said_in_the_zone_of_their_day(
    daily: object, total: object, sentences: list[str]
) -> None:
    figures = {"dailySpentAt": daily, "totalSpentAt": total}

    assert describe_spent(figures, zone="Europe/Berlin", now=NOW) == sentences


@pytest.mark.parametrize(
    ("banners", "creatives", "words"),
    [
        ([], 0, "no placement and no banner"),
        ([None], 0, "a placement, but no banner"),
        ([None, "a banner"], 0, ""),
        ([], 1, ""),
    ],
)
def test_what_a_campaign_lacks_is_said(banners: list[str | None], creatives: int, words: str) -> None:
    found = describe_missing([{"bannerId": one} for one in banners], creatives=creatives)

    assert found.startswith(f"It has {words}" if words else "")
    assert bool(found) == bool(words)


@for_each(
    ("bid", "owner", "words"),
    [
        (None, "an advertiser", "It has no bid."),
        (0, "an advertiser", "It has no bid."),
        (2, "an advertiser", ""),
        (None, None, ""),
    ],
)
def test_an_advertiser_is_told_that_it_needs_a_bid(bid: float | None, owner: str | None, words: str) -> None:
    found = describe_missing_bid({"bidAmount": bid, "advertiserId": owner})

    assert (found[:14] if found else "") == words


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], ""),
        (["A"], "“A” has no banner yet, so there is nothing to show."),
        (["A", "B"], "“A”, “B” have no banner yet, so there is nothing to show."),
        (list("ABCDEFG"), "“A”, “B”, “C”, “D”, “E” and 2 more have no banner yet, so there is nothing to show."),
    ],
)  # fmt: skip
def test_those_of_several_campaigns_that_have_nothing_to_show_are_named(names: list[str], words: str) -> None:
    assert describe_empty(names) == words
