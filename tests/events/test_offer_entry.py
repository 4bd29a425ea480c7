"""The log's entries of reports of offers: joined from parts, they say what the whole event says."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from adloom.core.money import Micros
from adloom.events.ingest.accept import (
    ClickRequest,
    ImpressionRequest,
    RequestInfo,
    build_event,
    encode_offered,
)
from adloom.events.ingest.bounds import SURELY_SHORT, encode_bounded
from adloom.events.ingest.ivt.flags import NO_FLAGS, TrafficFlags
from adloom.events.ingest.token import OfferToken, TokenKeys, pack_charge, pack_terms
from adloom.events.log.event import ChargedBy, Mark, decode_event
from tests.events.builders import BANNER, CAMPAIGN, NOW, PLACEMENT, SECRET, USER

KEYS = TokenKeys(SECRET)

texts = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
addresses = texts | st.sampled_from(["x" * SURELY_SHORT, "x" * (SURELY_SHORT + 1), "ä" * 3_000])


@st.composite
def offers(draw: st.DrawFn) -> OfferToken:
    charge = pack_charge(
        Micros(draw(st.sampled_from([0, 1, 250_000, 2**51 - 1]))),
        draw(st.sampled_from(ChargedBy)),
        draw(st.sampled_from([0, 1, 7, 2**11 - 1])),
    )
    token = KEYS.signer.sign(
        pack_terms(BANNER.bytes + CAMPAIGN.bytes, PLACEMENT.bytes, charge),
        draw(st.uuids()).bytes,
        int(NOW.timestamp()) - draw(st.sampled_from([0, 5, 1_799, 1_801, int(NOW.timestamp())])),
        draw(st.sampled_from([0, 1, 127, 128, 255])),
        draw(st.sampled_from([0, 1, 2**32 - 1])),
    )
    offer = KEYS.verify(token, now=NOW)
    assert isinstance(offer, OfferToken)
    return offer


@given(
    offer=offers(),
    is_click=st.booleans(),
    strings=st.tuples(texts, texts, st.sampled_from([None, "de", "T1"]), addresses, addresses),
    user_id=st.sampled_from([None, USER]),
    occurred_at=st.none()
    | st.integers(-(10**6), 10**6).map(lambda second: NOW + timedelta(seconds=second, microseconds=7)),
    info=st.sampled_from([RequestInfo(), RequestInfo("mobile", "AT")]),
    flags=st.sampled_from([NO_FLAGS, NO_FLAGS, TrafficFlags((Mark.CRAWLER,), "192.0.2.0/24")]),
)
def test_an_entry_of_parts_is_read_as_the_event(  # noqa: PLR0913, PLR0917 - all that an event has
    offer: OfferToken,
    is_click: bool,  # noqa: FBT001 - drawn
    strings: tuple[str | None, ...],
    user_id: UUID | None,
    occurred_at: datetime | None,
    info: RequestInfo,
    flags: TrafficFlags,
) -> None:
    session_id, device_type, country_code, page_url, other_url = strings
    fields: dict[str, Any] = {
        "correlation_id": "one",
        "banner_id": BANNER,
        "placement_id": PLACEMENT,
        "session_id": session_id,
        "user_id": user_id,
        "device_type": device_type,
        "country_code": country_code,
        "page_url": page_url,
        "occurred_at": occurred_at,
    }
    report = (
        ClickRequest(**fields, destination_url=other_url)
        if is_click
        else ImpressionRequest(**fields, referrer_url=other_url)
    )

    entry = encode_offered(report, offer, info, flags, NOW)

    assert decode_event(entry) == decode_event(
        encode_bounded(build_event(report, offer, info, flags, now=NOW))
    )
