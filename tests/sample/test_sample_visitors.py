"""Simulated visitors look like visitors, not like crawlers."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from adloom.sample.visitors.visitors import COUNTRIES, DEVICES, pick, pick_visitor
from adloom.serving.request.device import DeviceParser
from tests.sample.builders import a_chance


def test_no_visitor_counts_as_a_crawler() -> None:
    devices = DeviceParser()

    assert not any(devices.is_crawler(agent.encode()) for agent, _ in DEVICES)


def test_visitors_have_all_kinds_of_devices() -> None:
    devices = DeviceParser()

    assert {devices.device_of(agent.encode()) for agent, _ in DEVICES} == {"mobile", "tablet", "desktop"}


def test_a_returning_visitor_has_the_same_properties() -> None:
    chance = a_chance()
    visitors = [pick_visitor(chance) for _ in range(2_000)]

    properties = {(visitor.id, visitor.user_agent, visitor.country, visitor.language) for visitor in visitors}

    assert len(properties) == len({visitor.id for visitor in visitors}) <= 400


def test_only_returning_visitors_send_a_session_id() -> None:
    chance = a_chance()
    visitors = [pick_visitor(chance) for _ in range(100)]

    assert all(("x-session-id" in visitor.build_headers()) is not visitor.is_new for visitor in visitors)
    assert {visitor.is_new for visitor in visitors} == {True, False}


def test_most_visitors_are_in_the_country_of_the_magazine() -> None:
    chance = a_chance()

    countries = Counter(pick_visitor(chance).country for _ in range(2_000))

    assert set(countries) == {country for (country, _), _ in COUNTRIES}
    assert countries.most_common(1)[0][0] == "GB"


@given(st.lists(st.floats(0.01, 10), min_size=1), st.floats(0, 1, exclude_max=True))
def test_a_pick_is_always_one_of_the_options(weights: list[float], drawn: float) -> None:
    assert pick(list(enumerate(weights)), drawn) in range(len(weights))
