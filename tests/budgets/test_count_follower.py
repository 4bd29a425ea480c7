"""What campaigns with caps hear of their impressions and clicks."""

from datetime import timedelta
from typing import Final

import msgspec

from adloom.budgets.config.count_follower import CountFollower, CountReader
from adloom.budgets.messages import CampaignCounts, ChargeKind, MoneyKind
from adloom.core.clock import SystemClock
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.events.log.stream import STREAM, ValkeyEventLog
from adloom.events.tables.store import EVENT_TABLES
from adloom.runtime.actors.actor import Address
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.budgets.builders import UNIT, CampaignBench, a_campaign, a_confirm
from tests.budgets.worker_stage import CAMPAIGN, insert_campaign

COUNT: Final = """
    INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id, impressions, clicks, conversions)
    SELECT date_trunc('hour', $1::timestamptz), 1, 1, id, 100, 10, 3 FROM campaigns
"""


class Heard:
    """A host that keeps what it is told."""

    def __init__(self) -> None:
        self.messages: list[CampaignCounts] = []

    def tell(self, address: Address, message: object) -> bool:
        assert str(CAMPAIGN) in address.key
        assert isinstance(message, CampaignCounts)
        self.messages.append(message)
        return True


def a_follower(pool: Pool, valkey: Valkey, heard: Heard) -> CountFollower:
    return CountFollower(
        CountReader(pool, SystemClock()),
        ValkeyEventLog(valkey),
        heard,  # pyright: ignore[reportArgumentType] - it only tells
        SystemClock(),
    )


async def test_a_campaign_with_a_cap_hears_of_its_counts_once_and_when_it_asks(
    pool: Pool, valkey: Valkey
) -> None:
    await insert_campaign(pool)
    await pool.execute(COUNT, SystemClock().now() - timedelta(days=3))
    await pool.execute("UPDATE campaigns SET impression_cap = 1000")
    heard = Heard()
    follower = a_follower(pool, valkey, heard)

    for _ in range(3):
        await follower.poll()

    [counts] = heard.messages
    assert (counts.impressions, counts.clicks, counts.complete_until) == (100, 10, 0)

    asked = int(SystemClock().now().timestamp())
    follower.take_request(CampaignId(CAMPAIGN))
    await follower.poll()
    assert heard.messages[1] == msgspec.structs.replace(
        counts, complete_until=heard.messages[1].complete_until
    )
    assert heard.messages[1].complete_until >= asked
    await ValkeyEventLog(valkey).append([b"an event that the tables have not counted yet"])
    follower.take_request(CampaignId(CAMPAIGN))
    await follower.poll()
    assert len(heard.messages) == 2
    last = await ValkeyEventLog(valkey).read_last_id()
    await pool.execute(
        "INSERT INTO projection_cursors (projection, entry_id) VALUES ($1, $2)"
        " ON CONFLICT (projection) DO UPDATE SET entry_id = $2",
        EVENT_TABLES,
        last,
    )
    await follower.poll()
    await follower.poll()
    assert [one.until for one in heard.messages] == [counts.until, counts.until, last]

    await ValkeyEventLog(valkey).append([b"an event that is lost with the server that had it"])
    follower.take_request(CampaignId(CAMPAIGN))
    await follower.poll()
    assert len(heard.messages) == 3
    await valkey.xdel(STREAM, await ValkeyEventLog(valkey).read_last_id())
    await follower.poll()
    assert len(heard.messages) == 4, "what is no longer in the log is not waited for"

    follower.find_logged_until = lambda: asked - 7.0
    follower.take_request(CampaignId(CAMPAIGN))
    await follower.poll()
    assert heard.messages[4].complete_until == asked - 7, "what waits in a spool is not in the log"


async def test_a_campaign_hears_of_events_that_the_tables_count_days_later(
    pool: Pool, valkey: Valkey
) -> None:
    """A worker that was away for days is told of its caps before the tables have caught up."""
    await insert_campaign(pool)
    await pool.execute("UPDATE campaigns SET impression_cap = 1000")
    heard = Heard()
    follower = a_follower(pool, valkey, heard)
    await follower.poll()

    at = SystemClock().now() - timedelta(days=3)
    await pool.execute(COUNT, at)
    await pool.execute("INSERT INTO events.event_days (day, events) VALUES ($1, 110)", at.date())
    await pool.execute(
        "INSERT INTO projection_cursors (projection, entry_id) VALUES ($1, '7-0')"
        " ON CONFLICT (projection) DO UPDATE SET entry_id = '7-0'",
        EVENT_TABLES,
    )
    await follower.poll()

    assert [one.impressions for one in heard.messages] == [0, 100]


async def test_a_campaign_without_a_cap_hears_nothing(pool: Pool, valkey: Valkey) -> None:
    await insert_campaign(pool)
    await pool.execute(COUNT, SystemClock().now())
    heard = Heard()

    follower = a_follower(pool, valkey, heard)
    follower.take_request(CampaignId(CAMPAIGN))
    await follower.poll()

    assert heard.messages == []


def test_clicks_before_a_click_cap_was_set_are_within_it() -> None:
    bench = CampaignBench(a_campaign())
    bench.take(CampaignCounts(impressions=100, clicks=4, until="7-0"))
    bench.take(CampaignCounts(impressions=200, clicks=9, until="8-0"))
    bench.take(a_campaign(version=2, click_cap=10))

    for number in (1, 2):
        bench.take(a_confirm(number, kind=ChargeKind.CLICK, amount=Micros(UNIT // 2)))
        bench.take(CampaignCounts(impressions=200, clicks=9 + number, until=f"{8 + number}-0"))
    bench.wait(1)

    assert [row.kind for row in bench.rows] == [MoneyKind.CHARGE, MoneyKind.OVER_CAP]


def test_clicks_while_there_was_no_click_cap_are_within_the_next_one() -> None:
    bench = CampaignBench(a_campaign(click_cap=10))
    bench.take(CampaignCounts(impressions=100, clicks=0, until="1-0"))
    for number in range(1, 7):
        if number == 3:
            bench.take(a_campaign(version=2))
        bench.take(a_confirm(number, kind=ChargeKind.CLICK, entry_id=f"{number + 1}-0"))

    bench.take(a_campaign(version=3, click_cap=7))
    bench.take(CampaignCounts(impressions=100, clicks=6, until="7-0"))
    for number in (7, 8):
        bench.take(a_confirm(number, kind=ChargeKind.CLICK, entry_id=f"{number + 1}-0"))
    bench.wait(1)

    assert [row.kind for row in bench.rows] == [MoneyKind.CHARGE] * 7 + [MoneyKind.OVER_CAP]
