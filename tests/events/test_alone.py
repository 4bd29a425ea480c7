"""An event that names a user is an entry of its own in the log, whoever encodes it, and is found there by its user."""

import asyncio
from datetime import UTC
from typing import Any, TypeAlias, cast
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from adloom.core.money import Micros
from adloom.events.erasure import StreamSearch
from adloom.events.ingest.accept import (
    ClickRequest,
    ImpressionRequest,
    RequestInfo,
    build_event,
    encode_offered,
)
from adloom.events.ingest.bounds import encode_bounded
from adloom.events.ingest.ivt.flags import NO_FLAGS, TrafficFlags
from adloom.events.ingest.token import OfferToken, TokenKeys, pack_charge, pack_terms
from adloom.events.log.event import ChargedBy, LogEntry, LogEvent, Mark, decode_event, encode_event
from adloom.events.log.event_group import GROUP_EVENTS_MIN, group_events, unpack_group
from adloom.events.log.served_encoder import ServedEventEncoder
from adloom.events.log.stream import STREAM, ValkeyEventLog
from adloom.events.projections.dead_letters import wrap_redelivery
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.valkey import open_valkey
from tests.events.builders import BANNER, CAMPAIGN, NOW, PLACEMENT, SECRET, a_conversion, an_auction
from tests.events.followed import a_served

Rows: TypeAlias = list[tuple[bytes, dict[bytes, bytes]]]
KEYS = TokenKeys(SECRET)
# What a client may send: texts with the bytes before a user's id in them, as far as texts can have those.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.just("\xa1u\xc4\x10" + 16 * "x")
users = st.uuids() | st.sampled_from(
    [UUID(int=0), UUID(bytes=b"\xa1u\xc4\x10" * 4), UUID(bytes=b"\xff" * 16)]
)


def find_user(event: LogEvent) -> UUID | None:
    return getattr(event, "user_id", None)


@st.composite
def reported(draw: st.DrawFn, user: UUID | None) -> bytes:
    """An impression or click as delivery encodes it: of an offer, in parts; or without a token, flagged, or too long."""
    url = draw(texts | st.just("x" * 5_000))
    fields: dict[str, Any] = {
        "correlation_id": draw(texts),
        "banner_id": BANNER,
        "placement_id": PLACEMENT,
        "session_id": draw(texts | st.none()),
        "user_id": user,
        "page_url": draw(texts | st.none()),
    }
    report: ImpressionRequest | ClickRequest = (
        ClickRequest(**fields, destination_url=url)
        if draw(st.booleans())
        else ImpressionRequest(**fields, referrer_url=url)
    )
    flags = draw(st.sampled_from([NO_FLAGS, TrafficFlags((Mark.CRAWLER,), "192.0.2.0/24")]))
    if draw(st.booleans()):
        return encode_offered(report, draw(offers()), RequestInfo("mobile", "AT"), flags, NOW)
    source = draw(st.just(report) | offers())
    return encode_bounded(build_event(report, source, RequestInfo(), flags, now=NOW))


@st.composite
def offers(draw: st.DrawFn) -> OfferToken:
    charge = pack_charge(Micros(draw(st.sampled_from([0, 1, 250_000]))), draw(st.sampled_from(ChargedBy)), 0)
    terms = pack_terms(BANNER.bytes + CAMPAIGN.bytes, PLACEMENT.bytes, charge)
    token = KEYS.signer.sign(terms, draw(st.uuids()).bytes, int(NOW.timestamp()) - 5, 1, 7)
    offer = KEYS.verify(token, now=NOW)
    assert isinstance(offer, OfferToken)
    return offer


@st.composite
def served(draw: st.DrawFn, user: UUID) -> bytes:
    """A served offer as an auction encodes it."""
    encoder = ServedEventEncoder(
        banner_id=BANNER,
        placement_id=PLACEMENT,
        campaign_id=CAMPAIGN,
        placement_type=draw(texts.filter(bool)),
        final_price=Micros(draw(st.integers(0, 2**62))),
        winning_ecpm=Micros(draw(st.integers(0, 2**62))),
    )
    moment = draw(st.datetimes(timezones=st.just(UTC), min_value=NOW.replace(year=2020, tzinfo=None)))
    return encoder.encode(draw(st.uuids()).bytes, moment, int(moment.timestamp()), user.bytes)


def of_user(user: UUID) -> st.SearchStrategy[bytes]:
    """What is appended of a user: a report, a served offer, an auction, and any of them again for one follower."""
    once = st.one_of(
        reported(user),
        served(user),
        st.just(encode_event(a_served(user_id=user))),
        st.just(encode_event(an_auction(user_id=user))),
    )
    return once | once.map(lambda entry: wrap_redelivery(LogEntry("1-0", entry), "topics"))


of_nobody = st.one_of(
    reported(None),
    texts.map(lambda text: encode_event(a_conversion(currency=text))),
    st.just(encode_event(a_served())),
)


@given(user=users, data=st.data())
def test_an_event_of_a_user_is_in_no_group(user: UUID, data: st.DataObject) -> None:
    named = data.draw(st.lists(of_user(user), min_size=1, max_size=4))
    others = data.draw(st.lists(of_nobody, max_size=8))
    taken = data.draw(st.permutations(named + others))

    alone, groups = group_events(taken)

    grouped = [event for group in groups for event in unpack_group(group.packed)]
    assert sorted([*alone, *grouped]) == sorted(taken)
    assert not set(grouped).intersection(named)
    assert [decode_event(event) for event in grouped if find_user(decode_event(event))] == []


@settings(max_examples=20)
@given(user=users.filter(lambda user: user.int), data=st.data())
def test_every_event_of_a_user_is_found_by_the_users_id_and_no_other_is(
    user: UUID, data: st.DataObject, shared_valkey: EmbeddedValkey
) -> None:
    named = data.draw(st.lists(of_user(user), min_size=1, max_size=4))
    others = data.draw(st.lists(of_nobody, min_size=GROUP_EVENTS_MIN, max_size=8))
    taken = data.draw(st.permutations(named + others))

    async def append_and_find() -> None:
        async with open_valkey(shared_valkey.url) as valkey:
            await valkey.delete(STREAM)
            await ValkeyEventLog(valkey).append(taken)
            found = await StreamSearch(valkey).find_in_log(user)
            rows = [await valkey.xrange(STREAM, one, one) for one in found]
            assert sorted(fields[b"e"] for [(_, fields)] in cast("list[Rows]", rows)) == sorted(named)

    asyncio.run(append_and_find())
