"""`adloom ledger topics`: what there is to follow, and its schemas."""

import json

import pytest

from adloom.cli.ledger_report import LedgerCommandError, find_schema, report_topics
from adloom.events.topics.publish import CLICK_TRACKED, TOPICS
from adloom.runtime.valkey import Valkey


async def test_each_topic_is_listed_with_how_much_it_has(valkey: Valkey, redis_url: str) -> None:
    await valkey.xadd(CLICK_TRACKED, {"event": "{}"}, id="1794744000123-0")
    await valkey.xadd(CLICK_TRACKED, {"event": "{}"}, id="1794744001999-5")

    lines = [line async for line in report_topics(redis_url)]

    assert [line.split()[0] for line in lines] == list(TOPICS)
    assert "2 entries, the last at 2026-11-15 12:00:01 UTC" in lines[1]
    assert " 0 entries (an ad was seen)" in lines[0]


async def test_without_valkey_it_says_so() -> None:
    with pytest.raises(LedgerCommandError, match="Valkey does not answer"):
        _ = [line async for line in report_topics("redis://127.0.0.1:1")]


def test_a_schema_is_printed_by_its_topic_and_an_unknown_topic_is_named_with_those_there_are() -> None:
    assert json.loads(find_schema(CLICK_TRACKED))["title"] == CLICK_TRACKED

    with pytest.raises(LedgerCommandError, match=r"no topic 'ads\.clicks'; there are ads\.impression"):
        find_schema("ads.clicks")
