"""Reports of conversions, and how shops learn the id of a click."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import ValidationFailedError
from adloom.events.ingest.conversion_reports import VALUE_MAX, ConversionRequest, build_conversion, hash_name
from adloom.events.ingest.token import OfferToken, TokenKeys
from adloom.runtime.http.body import BodyDecoder
from tests.events.builders import NOW, SECRET, USER, FakeIndex, a_token
from tests.events.edge import an_edge
from tests.support.for_each import for_each

OFFER = TokenKeys(SECRET).verify(a_token(), now=NOW)
decode = BodyDecoder(ConversionRequest).decode


def report(value: Decimal | None) -> ConversionRequest:
    return ConversionRequest(correlation_id="one", tracking_token="", value=value)


@given(st.decimals() | st.text("0123456789.eE+-", min_size=1).map(lambda text: f"1{text}"))
def test_a_value_is_exact_or_refused(value: Decimal | str) -> None:
    assert isinstance(OFFER, OfferToken)
    problems: list[str] = []
    try:
        given = decode(f'{{"correlationId":"a","trackingToken":"b","value":"{value}"}}'.encode())
        event = build_conversion(given, OFFER, now=NOW)
    except ValidationFailedError as error:
        problems = [problem.field for problem in error.errors]
    else:
        assert given.value is not None
        assert 0 <= event.value <= VALUE_MAX * 10**6
        assert Decimal(event.value) == given.value * 10**6

    assert problems in ([], ["value"])


@for_each("text", ["7", "7.5", '"7.5"', "0", "1000000000", "1e3", "0.0001", "-0"])
def test_values_may_be_numbers_or_texts(text: str) -> None:
    assert isinstance(OFFER, OfferToken)
    given = decode(f'{{"correlationId":"a","trackingToken":"b","value":{text}}}'.encode())

    event = build_conversion(given, OFFER, now=NOW)

    assert event.value == int(Decimal(text.strip('"')) * 10**6)


def test_the_name_of_an_order_is_not_kept() -> None:
    assert isinstance(OFFER, OfferToken)
    given = ConversionRequest(correlation_id=f"ada@example.com {USER}", tracking_token="")

    event = build_conversion(given, OFFER, now=NOW)

    assert event.name == hash_name(given.correlation_id)
    assert len(event.name) == 16


async def test_a_click_gives_the_landing_page_its_id_where_the_campaign_asks_for_it() -> None:
    async with an_edge() as edge:
        edge.index = FakeIndex("https://shop.example/p?a=1#top")
        edge.index.with_click_id = True
        answer = await edge.ask(b"GET", b"/c/" + a_token())

    location = b"location: https://shop.example/p?a=1&adloom_click=" + a_token() + b"#top\r\n"
    assert location in answer.head
    [click] = edge.store.events
    assert a_token().decode() not in repr(click)


async def test_a_landing_page_gets_no_id_unasked() -> None:
    async with an_edge() as edge:
        answer = await edge.ask(b"GET", b"/c/" + a_token())

    assert b"adloom_click" not in answer.head
