"""Law: after an erasure, a search of every table, stream, key and topic for the user's id finds nothing."""

from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from adloom.core.ids import CampaignId, RequestId
from adloom.core.money import Micros
from adloom.events.auction_log.side_stream import AuctionSideStream, pack_pair
from adloom.events.log.event import Served, encode_event
from adloom.events.log.names import hide_user
from adloom.events.log.stream import STREAM
from adloom.events.projections.dead_letters import DeadLetterQueue
from adloom.events.rebuild.log_scanner import LogScanner
from adloom.events.rebuild.rebuild import EventTablesRebuild
from adloom.events.topics.publish import IMPRESSION_TRACKED
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import BANNER, PLACEMENT, REQUEST, a_click, an_auction, an_impression
from tests.events.catalog import cap_banners
from tests.events.followed import begin_topics
from tests.stats.log_worker import LogWorker
from tests.support.builders import NOON
from tests.support.control import Client, ControlPlane

USER = UUID("01890000-0000-7000-8000-00000000abcd")
SPELLINGS = (str(USER).encode(), USER.hex.encode(), USER.bytes)
PERSONAL: dict[str, Any] = {"user_id": USER, "session_id": "s", "page_url": f"https://pub.example/?me={USER}"}
READ_BY_TYPE = {
    b"string": ("GET",),
    b"hash": ("HGETALL",),
    b"stream": ("XRANGE", "-", "+"),
    b"set": ("SMEMBERS",),
    b"zset": ("ZRANGE", "0", "-1"),
    b"list": ("LRANGE", "0", "-1"),
}
HIDDEN = hide_user(f"MY-{str(USER).upper()}", USER)  # As events with such names are accepted.


@pytest.fixture
async def worker(admin: Client, pool: Pool, valkey: Valkey) -> LogWorker:
    return LogWorker(pool, valkey, await admin.make_banner(), await admin.make_placement())


def a_served(**fields: Any) -> Served:
    return Served(
        request_id=RequestId(REQUEST),
        slot=0,
        banner_id=BANNER,
        placement_id=PLACEMENT,
        campaign_id=CampaignId(REQUEST),
        placement_type="feed",
        served_at=NOON,
        final_price=Micros(1),
        winning_ecpm=Micros(1),
        **fields,
    )


async def search(pool: Pool, valkey: Valkey) -> list[str]:
    """Return everything that has the user's id in it, in any spelling."""
    found = [f"table {table}" for table in await _search_tables(pool)]
    for key in cast("list[bytes]", await valkey.execute_command("KEYS", "*")):
        held = key + await _read_key(valkey, key)
        found += [f"key {key!r}" for spelling in SPELLINGS if spelling in held]
    return found


async def _search_tables(pool: Pool) -> list[str]:
    tables = await pool.fetch(
        """
        SELECT format('%I.%I', nspname, relname) AS name
          FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
         WHERE relkind IN ('r', 'p', 'm') AND nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
        """
    )
    patterns = [f"%{USER}%", f"%{USER.hex}%"]
    return [
        table["name"]
        for table in tables
        if await pool.fetchval(
            f"SELECT EXISTS (SELECT FROM {table['name']} AS it WHERE it::text ILIKE ANY ($1::text[]))",  # noqa: S608 - names of the catalog
            patterns,
        )
    ]


async def _read_key(valkey: Valkey, key: bytes) -> bytes:
    kind = cast("bytes", await valkey.type(key))
    command, *bounds = READ_BY_TYPE[kind]
    return b" ".join(_flatten(cast("object", await valkey.execute_command(command, key, *bounds))))


def _flatten(held: object) -> list[bytes]:
    if isinstance(held, dict):
        return [part for pair in cast("dict[object, object]", held).items() for part in _flatten(pair)]
    if isinstance(held, list | tuple | set):
        return [part for one in cast("list[object]", held) for part in _flatten(one)]
    return [held] if isinstance(held, bytes) else []


async def test_an_erased_id_is_nowhere(
    control: ControlPlane, admin: Client, pool: Pool, valkey: Valkey, worker: LogWorker
) -> None:
    await cap_banners(pool)
    await begin_topics(valkey)
    await worker.append("one", "one", "two", referrer_url=f"https://r.example/{USER}", **PERSONAL)
    await worker.append(HIDDEN, user_id=USER)
    await worker.append_click("three", destination_url=f"https://shop.example/?u={USER}", **PERSONAL)
    await worker.append_events(a_served(user_id=USER))
    side_stream = AuctionSideStream(valkey)
    await side_stream.append([pack_pair(encode_event(a_served()), encode_event(an_auction(user_id=USER)))])
    letters = DeadLetterQueue(valkey)
    for name, event in (("1-0", an_impression(**PERSONAL)), ("2-0", a_served(user_id=USER))):
        data = encode_event(event)
        await letters.add("event_tables", name, data, reason=f"no row takes {USER}", tries=3, again=data)
    await letters.add("event_tables", "3-0", b"torn" + USER.bytes, reason="", tries=3, again=USER.bytes)
    await worker.catch_up()
    counted = await pool.fetchval("SELECT sum(events) FROM events.event_days")
    assert len({place.partition(" ")[0] for place in await search(pool, valkey)}) == 2, (
        "it finds what is there"
    )
    assert await valkey.xlen(IMPRESSION_TRACKED)
    # On its way: in the log, and not applied yet.
    await worker.append("four", "one", **PERSONAL)
    await worker.append_events(a_served(user_id=USER))

    answer = await admin.delete(f"/admin/privacy/users/{USER}")
    assert answer.status_code == 200, answer.text
    # Later still: from a spool.
    await worker.append("five", "one", **PERSONAL)
    await worker.append_click("six", **PERSONAL)
    await worker.append_events(a_served(user_id=USER))
    await worker.catch_up()
    await worker.look_after(control.clock)

    assert await search(pool, valkey) == []
    assert await pool.fetchval("SELECT sum(events) FROM events.event_days") == counted + 3
    [letter] = await letters.list_after()
    assert letter.data == encode_event(an_impression())


async def test_counts_are_the_same_when_tables_are_rebuilt_after_an_erasure(
    control: ControlPlane, admin: Client, pool: Pool, valkey: Valkey, worker: LogWorker
) -> None:
    await worker.append("one", "two", HIDDEN, **PERSONAL)
    await worker.append("of another")
    await worker.append_events(a_click("unknown banner"))
    await worker.catch_up()
    await admin.delete(f"/admin/privacy/users/{USER}")
    await worker.look_after(control.clock)

    report = await EventTablesRebuild(pool, LogScanner(valkey)).run()

    assert (report.events_before, report.events) == (4, 4)
    assert await search(pool, valkey) == []


async def test_others_stay_counted_that_are_in_a_group_with_an_address_with_the_erased_id(
    control: ControlPlane, admin: Client, pool: Pool, valkey: Valkey, worker: LogWorker
) -> None:
    """Any client may report such an address. The group goes, with entries of the user; no event in it is one of those."""
    place = {"page_url": f"https://pub.example/?me={USER}"}
    mine = [worker.make_impression(f"mine {number}", **PERSONAL) for number in range(3)]
    others = [worker.make_impression(f"other {number}") for number in range(20)]
    await worker.append_events(*mine, *others, worker.make_impression("of nobody", **place))
    await worker.append_events(*(worker.make_impression(f"later {number}") for number in range(20)))
    assert await valkey.xlen(STREAM) == 3 + 1 + 1
    await worker.append_events(
        *(worker.make_impression(f"not applied {number}", **place) for number in range(9))
    )
    await admin.delete(f"/admin/privacy/users/{USER}")
    await worker.look_after(control.clock)
    assert await valkey.xlen(STREAM) == 3 + 1 + 1 + 1, "nothing goes that is not applied by all"

    await worker.catch_up()
    await worker.look_after(control.clock)

    assert await valkey.xlen(STREAM) == 1
    before = await pool.fetch("SELECT hour, impressions, clicks FROM events.event_counts ORDER BY 1")
    assert await pool.fetchval("SELECT sum(events) FROM events.event_days") == 3 + 20 + 1 + 20 + 9
    report = await EventTablesRebuild(pool, LogScanner(valkey), lead=timedelta()).run()
    assert (report.copied, report.applied.counted, report.events) == (33, 20, 53)
    assert await pool.fetch("SELECT hour, impressions, clicks FROM events.event_counts ORDER BY 1") == before


async def test_no_entry_is_removed_before_all_projections_have_applied_it(
    control: ControlPlane, admin: Client, pool: Pool, worker: LogWorker
) -> None:
    await worker.append("one", **PERSONAL)
    await admin.delete(f"/admin/privacy/users/{USER}")

    await worker.look_after(control.clock)
    await worker.catch_up()

    assert await pool.fetchval("SELECT count(*) FROM events.banner_impressions") == 1
