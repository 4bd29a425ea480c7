"""The named periods of a report, what was before them, and which moments a chart shows."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.console.components.charts.chart import Series, build_chart_options
from adloom.console.pages.reports.question import (
    PERIODS,
    count_empty_start,
    describe_change,
    is_unfinished,
    list_moments,
    open_saved,
    parse_query,
)
from adloom.stats.saved_report.period import ReportPeriod, find_days, find_days_before, find_period

TODAY = date(2026, 3, 31)
NOW = datetime(2026, 3, 31, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("period", "days", "before"),
    [
        ("today", ("2026-03-31", "2026-03-31"), ("2026-03-30", "2026-03-30")),
        ("yesterday", ("2026-03-30", "2026-03-30"), ("2026-03-29", "2026-03-29")),
        ("last_7_days", ("2026-03-25", "2026-03-31"), ("2026-03-18", "2026-03-24")),
        ("last_week", ("2026-03-23", "2026-03-29"), ("2026-03-16", "2026-03-22")),
        ("this_month", ("2026-03-01", "2026-03-31"), ("2026-02-01", "2026-02-28")),
        ("last_month", ("2026-02-01", "2026-02-28"), ("2026-01-01", "2026-01-31")),
    ],
)
def test_a_period_has_its_days_and_those_before(
    period: str, days: tuple[str, str], before: tuple[str, str]
) -> None:
    found = find_days(ReportPeriod(period), today=TODAY)

    assert tuple(map(str, found)) == days
    assert tuple(map(str, find_days_before(found))) == before
    assert find_period(found, today=TODAY) == period


def test_the_first_days_of_a_month_are_compared_with_as_many_of_the_month_before() -> None:
    assert find_days_before((date(2026, 3, 1), date(2026, 3, 30))) == (date(2026, 2, 1), date(2026, 2, 28))
    assert find_days_before((date(2026, 5, 1), date(2026, 5, 3))) == (date(2026, 4, 1), date(2026, 4, 3))


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.integers(0, 400))
def test_the_period_before_ends_before_it_begins(first: date, length: int) -> None:
    days = first, first + timedelta(days=length)

    begins, ends = find_days_before(days)

    assert begins <= ends < first
    assert ends - begins <= days[1] - days[0] or first.day == 1


def test_every_period_is_a_choice() -> None:
    assert list(PERIODS) == [period.value for period in ReportPeriod]
    for period in ReportPeriod:
        first, last = find_days(period, today=TODAY)
        assert first <= last <= TODAY


def test_a_saved_report_is_opened_as_it_was_saved() -> None:
    asked = parse_query(
        {"by": "week,site", "compare": "1", "metric": "spendPaisa", "campaignId": "c", "zone": "Asia/Tokyo"},
        today=TODAY,
    )
    nothing = {"placementId": None, "bannerId": None, "country": None, "device": None}
    saved = {**nothing, **asked.saved, "period": "last_7_days", "columns": ["clicks"]}

    # In Tokyo it is already tomorrow.
    opened = open_saved(saved, now=datetime(2026, 3, 30, 20, tzinfo=UTC), zone="UTC")

    assert (opened.first, opened.last) == (asked.first, asked.last) == (date(2026, 3, 25), TODAY)
    assert (opened.by, opened.is_compared, opened.metric) == (("week", "site"), True, "spendPaisa")
    assert (opened.filters, opened.zone, opened.columns) == ({"campaignId": "c"}, "Asia/Tokyo", ("clicks",))
    assert asked.period is opened.period is ReportPeriod.LAST_7_DAYS


def test_days_without_data_are_on_the_axis_and_days_to_come_are_not() -> None:
    question = parse_query({"from": "2026-03-29", "to": "2026-04-02"}, today=TODAY)

    assert list_moments(question, "day", ["2026-03-30"], NOW) == ["2026-03-29", "2026-03-30", "2026-03-31"]
    assert count_empty_start(["2026-03-29", "2026-03-30"], {"2026-03-30"}) == 0


def test_two_centuries_are_drawn_from_the_first_day_with_data_on() -> None:
    question = parse_query({"from": "1900-01-01", "to": "2100-01-01"}, today=TODAY)

    moments = list_moments(question, "day", ["2026-03-30"], NOW)

    assert moments[count_empty_start(moments, {"2026-03-30"}) :] == ["2026-03-30", "2026-03-31"]


@pytest.mark.parametrize(
    ("time", "ended", "goes_on"),
    [
        ("hour", "2026-03-31T11:00:00Z", "2026-03-31T12:00:00Z"),
        ("day", "2026-03-30", "2026-03-31"),
        ("week", "2026-03-23", "2026-03-30"),
        ("month", "2026-02-01", "2026-03-01"),
    ],
)
def test_what_goes_on_is_known(time: str, ended: str, goes_on: str) -> None:
    assert not is_unfinished(time, ended, NOW)
    assert is_unfinished(time, goes_on, NOW)


def test_no_line_falls_to_an_hour_that_has_just_begun() -> None:
    series = Series(name="Impressions", values=[5, 6, 1], has_area=True, is_last_unfinished=True)

    line, point = build_chart_options(["10", "11", "12"], [series])["series"]

    assert (line["data"], point["data"]) == ([5, 6, None], [None, None, 1])
    assert line["name"] == point["name"]
    assert point["showSymbol"]


def test_a_change_is_told_against_the_period_before() -> None:
    before = parse_query({"from": "2026-03-25", "to": "2026-03-31"}, today=TODAY).before

    assert describe_change(112, 100, before) == "+12% against 18 Mar to 24 Mar"
    assert describe_change(0.5, 1.0, before) == "-50% against 18 Mar to 24 Mar"
    assert describe_change(5, 0, before) == "nothing in 18 Mar to 24 Mar"
    assert describe_change(None, 3, before) == ""


def test_an_address_keeps_the_comparison_and_the_zone() -> None:
    asked = parse_query({"compare": "1", "zone": "Europe/Berlin", "by": "week,site"}, today=TODAY)

    assert (
        parse_query(
            dict(
                one.split("=")
                for one in asked.build_address().replace("%2F", "/").replace("%2C", ",").split("&")
            ),
            today=TODAY,
        )
        == asked
    )
    assert parse_query({"zone": "Nowhere"}, today=TODAY).zone == "UTC"
