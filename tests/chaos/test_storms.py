"""The same events again and again, late, and in the wrong order, over HTTP: counted once, and judged alike."""

import asyncio
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx
import pytest

from adloom.events.log.event import Mark
from simulation.laws import EventKey, Row, StoredEvents, Witness, find_violations
from tests.chaos.catalog import some_ads
from tests.chaos.clients import Ads
from tests.chaos.stored_events import read_stored_events, settled
from tests.support.product import Product

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

EVENTS = 1_000
TIMES = 20
CLIENTS = 8
BATCH_MAX = 100
ONE_BY_ONE = 0.05
CLICKS_ONE_IN = 4
CRAWLER = {"User-Agent": "Googlebot/2.1 (+http://www.google.com/bot.html)"}
OF_YESTERDAY = ("yesterday in time", "yesterday, after the rollup")


@pytest.fixture(scope="module")
def ads(product: Product) -> Ads:
    with product.admin() as admin:
        return some_ads(admin, product.delivery_url, "storm")


@pytest.fixture(scope="module")
def witness() -> Witness:
    """Knows what all tests of this file have sent: the laws are of all events of its ads."""
    return Witness()


def some_events(ads: Ads, count: int) -> list[dict[str, Any]]:
    """Make impressions and clicks of all ads, of today and yesterday."""
    now = datetime.now(UTC)
    return [
        {
            "type": "click" if number % CLICKS_ONE_IN == 0 else "impression",
            "correlationId": f"storm-{number}",
            "occurredAt": (now - timedelta(minutes=number % 1_200)).isoformat(),
            **ads.ids[number % len(ads.ids)],
        }
        for number in range(count)
    ]


def key_of(event: dict[str, Any]) -> EventKey:
    return EventKey(event["type"], event["correlationId"])


async def send_all(url: str, events: list[dict[str, Any]], chance: Random) -> None:
    """Send events as one client, in batches of any size, and some by themselves."""
    async with httpx.AsyncClient(base_url=url, timeout=30) as http:
        while events:
            size = 1 if chance.random() < ONE_BY_ONE else chance.randint(2, BATCH_MAX)
            batch, events = events[:size], events[size:]
            if size == 1:
                answer = await http.post(f"/banners/events/{batch[0]['type']}", json=batch[0])
            else:
                answer = await http.post("/banners/events/batch", json={"events": batch})
            assert answer.status_code == 202, answer.text
            assert answer.json() in ({"accepted": True}, {"accepted": len(batch), "rejected": []})


async def stored(product: Product, admin: httpx.Client, ads: Ads, witness: Witness) -> StoredEvents:
    await settled(product, witness)
    return await read_stored_events(product, admin, {ids["bannerId"] for ids in ads.ids})


async def test_marks_and_figures_follow_in_whichever_order_the_events_of_an_offer_come(
    product: Product, admin: httpx.Client, ads: Ads, witness: Witness
) -> None:
    async with httpx.AsyncClient(timeout=30) as http:
        served = (await http.get(f"{product.delivery_url}/banners/serve/storm-home")).json()
        seen_late, never_seen = (f"offer:{served['requestId']}:{slot}" for slot in (0, 1))

        async def report(kind: str, slot: int, headers: dict[str, str] | None = None) -> None:
            banner = served["banners"][slot]
            event = {
                "correlationId": "whatever the client says",
                "bannerId": banner["id"],
                "placementId": served["placement"]["id"],
                "trackingToken": banner["trackingToken"],
            }
            address = f"{product.delivery_url}/banners/events/{kind}"
            answer = await http.post(address, json=event, headers=headers)
            assert answer.status_code == 202, answer.text
            key = EventKey(kind, f"offer:{served['requestId']}:{slot}{':flagged' if headers else ''}")
            witness.sent.add(key)
            witness.accepted.add(key)

        await report("click", 0)
        await report("click", 0, CRAWLER)
        await report("click", 1)
        before = await stored(product, admin, ads, witness)
        assert find_violations(witness, before) == []
        await report("impression", 0)
        await report("impression", 0, CRAWLER)
        after = await stored(product, admin, ads, witness)

    names = (seen_late, f"{seen_late}:flagged", never_seen)
    assert marks_of(before.rows, "click", names) == {
        seen_late: {Mark.CLICK_WITHOUT_IMPRESSION},
        f"{seen_late}:flagged": {Mark.CRAWLER, Mark.CLICK_WITHOUT_IMPRESSION, Mark.SECOND_CLICK},
        never_seen: {Mark.CLICK_WITHOUT_IMPRESSION},
    }
    assert find_violations(witness, after) == []
    assert marks_of(after.rows, "click", names) == {
        seen_late: set(),
        f"{seen_late}:flagged": {Mark.CRAWLER, Mark.SECOND_CLICK},
        never_seen: {Mark.CLICK_WITHOUT_IMPRESSION},
    }
    assert marks_of(after.rows, "impression", names) == {
        seen_late: set(),
        f"{seen_late}:flagged": {Mark.CRAWLER, Mark.SECOND_IMPRESSION},
    }


async def test_an_event_that_comes_after_its_day_was_rolled_up_is_in_every_figure(
    product: Product, admin: httpx.Client, ads: Ads, witness: Witness
) -> None:
    # As late as is believed, less what this test may take: yesterday's, whatever the hour.
    moment = datetime.now(UTC) - timedelta(hours=23, minutes=50)
    event = {"type": "impression", "occurredAt": moment.isoformat(), **ads.ids[0]}

    for count, name in enumerate(OF_YESTERDAY, start=1):
        await send_all(product.delivery_url, [{**event, "correlationId": name}], Random(1))  # noqa: S311 - no secret is made of it
        witness.sent.add(EventKey("impression", name))
        witness.accepted.add(EventKey("impression", name))
        witness.days[EventKey("impression", name)] = moment.date()
        said = await stored(product, admin, ads, witness)

        assert find_violations(witness, said) == []
        assert len([row for row in said.rows if row.key.correlation_id in OF_YESTERDAY]) == count


async def test_a_thousand_events_sent_twenty_times_by_eight_clients_are_a_thousand(
    product: Product, admin: httpx.Client, ads: Ads, witness: Witness
) -> None:
    events, chance = some_events(ads, EVENTS), Random(1)  # noqa: S311 - no secret is made of it
    deck = chance.sample(events * TIMES, EVENTS * TIMES)

    async with asyncio.TaskGroup() as clients:
        for number in range(CLIENTS):
            clients.create_task(send_all(product.delivery_url, deck[number::CLIENTS], Random(number)))  # noqa: S311 - likewise
    keys = {key_of(event) for event in events}
    witness.sent |= keys
    witness.accepted |= keys
    said = await stored(product, admin, ads, witness)

    assert find_violations(witness, said) == []
    assert len([row for row in said.rows if row.key in keys]) == EVENTS


def marks_of(rows: Iterable[Row], kind: str, names: Collection[str]) -> dict[str, set[str]]:
    found = [row for row in rows if row.key.kind == kind and row.key.correlation_id in names]
    return {row.key.correlation_id: set(row.marks) for row in found}
