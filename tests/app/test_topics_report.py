"""`adloom ledger topics`: the topics and their schemas."""

import json

import pytest

from adloom.cli.ledger_report import LedgerCommandError, find_schema, report_topics
from adloom.events.topics.publish import AD_SERVED, CLICK_TRACKED, TOPICS
from adloom.runtime.valkey import Valkey


async def test_each_topic_is_listed_with_its_entries(valkey: Valkey, redis_url: str) -> None:
    await valkey.xadd(CLICK_TRACKED, {"event": "{}"}, id="1794744000123-0")
    await valkey.xadd(CLICK_TRACKED, {"event": "{}"}, id="1794744001999-5")

    await valkey.xgroup_create(AD_SERVED, "reader", mkstream=True)

    lines = [line async for line in report_topics(redis_url)]

    assert [line.split()[0] for line in lines] == list(TOPICS)
    assert "2 entries, the last at 2026-11-15 12:00:01 UTC" in lines[1]
    assert " 0 entries, published from its first consumer group on (an ad was seen)" in lines[0]
    assert " 0 entries (an ad was offered" in lines[3]


async def test_the_report_without_valkey_is_an_error() -> None:
    with pytest.raises(LedgerCommandError, match="Valkey does not answer"):
        _ = [line async for line in report_topics("redis://127.0.0.1:1")]


def test_the_schema_of_a_topic_is_found_and_an_unknown_topic_is_an_error() -> None:
    assert json.loads(find_schema(CLICK_TRACKED))["title"] == CLICK_TRACKED

    with pytest.raises(LedgerCommandError, match=r"no topic 'ads\.clicks'; there are ads\.impression"):
        find_schema("ads.clicks")
