"""Events of the day before the sample was loaded, reported once."""

import functools
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from adloom.sample.visitors.visits import draw_past_events
from tests.sample.builders import LOADED_AT, a_chance, a_manifest


@functools.cache
def events_of_a_load() -> list[dict[str, Any]]:
    return list(draw_past_events(a_manifest(), a_chance()))


def test_all_events_are_in_the_24_hours_before_the_load() -> None:
    moments = [datetime.fromisoformat(event["occurredAt"]) for event in events_of_a_load()]

    assert min(moments) > LOADED_AT - timedelta(hours=24)
    assert max(moments) <= LOADED_AT


def test_each_part_of_them_has_all_hours() -> None:
    events = events_of_a_load()
    whole = Counter(event["occurredAt"][:13] for event in events)
    half = Counter(event["occurredAt"][:13] for event in events[: len(events) // 2])

    assert all(0.4 < half[hour] / count < 0.6 for hour, count in whole.items())


def test_repeated_events_are_the_same_events() -> None:
    again = list(draw_past_events(a_manifest(), a_chance()))

    names = [event["correlationId"] for event in again]
    assert again == events_of_a_load()
    assert len(set(names)) == len(names) > 5_000


def test_another_load_has_different_correlation_ids() -> None:
    later = draw_past_events(a_manifest(loaded_at=LOADED_AT + timedelta(hours=1)), a_chance())
    correlation_ids = {event["correlationId"] for event in events_of_a_load()}

    assert not correlation_ids & {event["correlationId"] for event in later}


def test_the_events_refer_only_to_the_sample_and_to_no_capped_campaign() -> None:
    manifest = a_manifest()

    events = events_of_a_load()

    assert {event["bannerId"] for event in events} <= set(manifest.get_ids("banners").values())
    assert {event["placementId"] for event in events} <= set(manifest.get_ids("placements").values())
    assert manifest.get_ids("campaigns")["lamps"] not in {event["campaignId"] for event in events}


def test_the_events_have_no_token_and_cannot_be_charged() -> None:
    assert not any("trackingToken" in event for event in events_of_a_load())


def test_between_half_and_four_per_cent_of_the_events_are_clicks() -> None:
    events = events_of_a_load()
    clicks = sum(event["type"] == "click" for event in events)

    assert 0.005 < clicks / len(events) < 0.04
