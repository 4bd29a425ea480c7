"""The simulated readers look like readers, not like crawlers."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from adloom.sample.visitors.visitors import COUNTRIES, DEVICES, pick, pick_visitor
from adloom.serving.request.device import DeviceParser
from tests.sample.builders import a_chance


def test_no_reader_is_taken_for_a_crawler() -> None:
    devices = DeviceParser()

    assert not any(devices.is_crawler(agent.encode()) for agent, _ in DEVICES)


def test_readers_have_all_kinds_of_devices() -> None:
    devices = DeviceParser()

    assert {devices.device_of(agent.encode()) for agent, _ in DEVICES} == {"mobile", "tablet", "desktop"}


def test_a_reader_who_comes_back_is_the_same() -> None:
    chance = a_chance()
    readers = [pick_visitor(chance) for _ in range(2_000)]

    about = {(reader.id, reader.user_agent, reader.country, reader.language) for reader in readers}

    assert len(about) == len({reader.id for reader in readers}) <= 400


def test_who_is_new_says_nothing_of_a_session() -> None:
    chance = a_chance()
    readers = [pick_visitor(chance) for _ in range(100)]

    assert all(("x-session-id" in reader.headers()) is not reader.is_new for reader in readers)
    assert {reader.is_new for reader in readers} == {True, False}


def test_most_readers_are_where_the_magazine_is() -> None:
    chance = a_chance()

    countries = Counter(pick_visitor(chance).country for _ in range(2_000))

    assert set(countries) == {country for (country, _), _ in COUNTRIES}
    assert countries.most_common(1)[0][0] == "GB"


@given(st.lists(st.floats(0.01, 10), min_size=1), st.floats(0, 1, exclude_max=True))
def test_a_choice_is_always_one_of_those_there_are(weights: list[float], drawn: float) -> None:
    assert pick(list(enumerate(weights)), drawn) in range(len(weights))
