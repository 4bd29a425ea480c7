"""The context of a request from its headers, its address, its query and the clock."""

import ipaddress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import ValidationFailedError
from adloom.events.ingest.accept import RequestInfo
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.runtime.http.geoip import Countries
from adloom.serving.request.context import ContextParser
from adloom.targeting.context import Context
from tests.support.for_each import for_each

PARSER = ContextParser()
UTC_ZONE = ZoneInfo("UTC")
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)  # a Sunday
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Safari/604.1"
)


def a_request(query: str = "", client: str | None = "", **headers: str) -> FastRequest:
    return FastRequest(
        b"GET",
        b"/banners/serve/home",
        query=query.encode(),
        client=client or None,
        headers=[
            (name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()
        ],
    )


def context_of(query: str = "", **headers: str) -> Context:
    return context_by(PARSER, query, **headers)


def context_by(parser: ContextParser, query: str = "", **headers: str) -> Context:
    return parser.parse(a_request(query, **headers), UTC_ZONE, NOON)


def test_a_request_without_headers_is_from_a_new_visitor_with_an_empty_context() -> None:
    assert context_of() == Context(
        device=None,
        country=None,
        language=None,
        is_logged_in=False,
        is_new_visitor=True,
        referrer_domain=None,
        segment=None,
        hour=12,
        day=0,
    )


def test_the_device_comes_from_the_user_agent() -> None:
    assert context_of(user_agent=IPHONE).device == "mobile"


@for_each(
    ("headers", "country"),
    [
        ({"x_country_code": "DE"}, "DE"),
        ({"x_country_code": "de"}, "DE"),
        ({"x_country_code": "DE", "cf_ipcountry": "FR"}, "DE"),
        ({"cf_ipcountry": "FR"}, "FR"),
        ({"x_country_code": "XX", "cf_ipcountry": "FR"}, "FR"),
        ({"x_country_code": "", "cf_ipcountry": "FR"}, "FR"),
        ({"x_country_code": "Germany", "cf_ipcountry": "FR"}, "FR"),
        ({"cf_ipcountry": "XX"}, None),
        ({"cf_ipcountry": "T1"}, None),
        ({"x_country_code": "\u00fc\u00fc"}, None),
    ],
)
def test_the_country_comes_from_the_first_header_with_a_valid_one(
    headers: dict[str, str], country: str | None
) -> None:
    assert context_of(**headers).country == country


def countries(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str | None:
    return {"93.184.216.34": "US", "194.150.168.168": "DE"}.get(str(address))


def test_the_country_of_the_address_is_used_if_no_header_has_one() -> None:
    parser = ContextParser(Countries(countries))

    assert context_by(parser, client="93.184.216.34").country == "US"
    assert context_by(parser, client="93.184.216.34", cf_ipcountry="XX").country == "US"
    assert context_by(parser, client="10.0.0.1", cf_ipcountry="FR").country == "FR"
    assert context_by(parser, client="10.0.0.1").country is None
    assert parser.parse(a_request(), UTC_ZONE, NOON).country is None


def test_only_a_trusted_proxy_may_forward_an_address() -> None:
    behind_a_proxy = ContextParser(Countries(countries), trusted=[ipaddress.ip_network("10.0.0.0/8")])
    forwarded = "194.150.168.168"

    assert context_by(behind_a_proxy, client="10.0.0.1", x_forwarded_for=forwarded).country == "DE"
    assert context_by(behind_a_proxy, client="93.184.216.34", x_forwarded_for=forwarded).country == "US"


@for_each(
    ("peer", "trusted", "country"),
    [
        ("93.184.216.34", (), None),
        ("127.0.0.1", (), "FR"),
        ("::ffff:10.0.0.1", (), "FR"),
        (None, (), "FR"),
        ("nonsense", (), None),
        ("10.0.0.1", ("192.0.2.0/24",), None),
        ("192.0.2.7", ("192.0.2.0/24",), "FR"),
    ],
)
def test_only_a_proxy_may_say_from_which_country_its_client_is(
    peer: str | None, trusted: tuple[str, ...], country: str | None
) -> None:
    parser = ContextParser(trusted=[ipaddress.ip_network(one) for one in trusted])
    request = a_request(client=peer, x_country_code="FR")

    assert parser.parse(request, UTC_ZONE, NOON).country == country
    assert parser.read_request_info(request).country_code == country


@pytest.mark.parametrize(
    ("client", "headers"),
    [
        ("", {}),
        ("", {"user_agent": IPHONE, "x_country_code": "de", "cf_ipcountry": "AT"}),
        ("", {"x_country_code": "XX", "cf_ipcountry": "AT"}),
        ("93.184.216.34", {}),
    ],
)
def test_an_event_has_the_device_and_country_that_serving_finds(client: str, headers: dict[str, str]) -> None:
    parser = ContextParser(Countries(countries))
    context = parser.parse(a_request(client=client, **headers), UTC_ZONE, NOON)

    info = parser.read_request_info(a_request(client=client, **headers))

    assert info == RequestInfo(context.device, context.country)


def test_without_a_country_file_the_address_gives_no_country() -> None:
    assert context_by(ContextParser(None), client="93.184.216.34").country is None


@for_each(
    ("accepted", "language"),
    [
        ("de-DE,de;q=0.9,en;q=0.8", "de"),
        ("DE", "de"),
        ("en;q=0.5,de;q=0.9", "en"),
        (" fr-CH , fr", "fr"),
        ("zh-Hant-TW", "zh"),
        ("gsw", "gsw"),
        ("*", None),
        ("", None),
        (",de", None),
        ("x-klingon", None),
        ("\u00e4\u00f6", None),
    ],
)
def test_the_language_is_the_primary_subtag_of_the_first_tag(accepted: str, language: str | None) -> None:
    assert context_of(accept_language=accepted).language == language


@for_each(
    ("authorization", "is_logged_in"),
    [
        ("Bearer abc.def.ghi", True),
        ("bearer abc", True),
        ("Bearer ", False),
        ("Bearer", False),
        ("Basic YTpi", False),
        ("Bearerabc", False),
        ("", False),
    ],
)
def test_a_bearer_token_is_a_login(authorization: str, *, is_logged_in: bool) -> None:
    assert context_of(authorization=authorization).is_logged_in is is_logged_in


@pytest.mark.parametrize(
    ("headers", "is_new"),
    [
        ({}, True),
        ({"x_device_id": "d"}, False),
        ({"x_session_id": "s"}, False),
        ({"x_device_id": "d", "x_session_id": "s"}, False),
        ({"x_device_id": "", "x_session_id": ""}, True),
    ],
)
def test_a_visitor_without_device_id_and_session_id_is_new(headers: dict[str, str], *, is_new: bool) -> None:
    assert context_of(**headers).is_new_visitor is is_new


@for_each(
    ("referer", "domain"),
    [
        ("https://News.Example.com/a/b?c=d#e", "news.example.com"),
        ("https://news.example.com", "news.example.com"),
        ("http://example.com:8080/x", "example.com"),
        ("https://example.com?x=1", "example.com"),
        ("https://user:word@example.com/", "example.com"),
        ("https://example.com./", "example.com"),
        ("https://evil.net\\@example.com/", "evil.net"),
        ("android-app://com.google.android.gm/", "com.google.android.gm"),
        ("https://[::1]/", None),
        ("about:blank", None),
        ("example.com/a", None),
        ("//example.com/a", None),
        ("https:///a", None),
        ("", None),
    ],
)
def test_the_referrer_is_the_host_of_its_address(referer: str, domain: str | None) -> None:
    assert context_of(referer=referer).referrer_domain == domain


@for_each(
    ("query", "field", "value"),
    [
        ("device=tablet", "device", "tablet"),
        ("device=Mobile", "device", "mobile"),
        ("device=", "device", None),
        ("country=fr", "country", "FR"),
        ("country=", "country", None),
        ("country=XX", "country", None),
        ("country=t1", "country", None),
        ("language=pt-BR", "language", "pt"),
        ("loggedIn=false", "is_logged_in", False),
        ("loggedIn=0", "is_logged_in", False),
        ("newVisitor=true", "is_new_visitor", True),
        ("newVisitor=1", "is_new_visitor", True),
        ("referrer=https%3A%2F%2Fblog.example.org%2Fpost", "referrer_domain", "blog.example.org"),
        ("referrer=Blog.example.org.", "referrer_domain", "blog.example.org"),
        ("segment=high-intent", "segment", "high-intent"),
        ("segment=K%C3%A4ufer+2", "segment", "K\u00e4ufer 2"),
        ("country=AT&country=CH", "country", "AT"),
        ("colour=red&country=AT", "country", "AT"),
        ("country=AT&userId=01890000-0000-7000-8000-000000000000", "country", "AT"),
    ],
)
def test_a_parameter_of_the_query_overrides_the_headers(query: str, field: str, value: object) -> None:
    headers = {
        "user_agent": IPHONE,
        "x_country_code": "DE",
        "accept_language": "de",
        "authorization": "Bearer x",
        "x_device_id": "d",
        "referer": "https://example.com/",
    }
    plain = context_of(**headers)

    overridden = context_of(query, **headers)

    assert getattr(overridden, field) == value
    names = [name for name in Context.__struct_fields__ if name != field]
    assert [getattr(overridden, name) for name in names] == [getattr(plain, name) for name in names]


def test_an_invalid_parameter_is_refused_every_time() -> None:
    for _ in range(2):
        with pytest.raises(ValidationFailedError) as caught:
            context_of("device=phone")
        assert [one.field for one in caught.value.errors] == ["device"]


def test_the_context_for_another_placement_differs_only_in_its_local_time() -> None:
    context = context_of(user_agent=IPHONE)

    moved = PARSER.move_to_zone(context, ZoneInfo("Asia/Tokyo"), NOON.replace(hour=20))

    assert (moved.hour, moved.day, moved.device) == (5, 1, "mobile")
    assert PARSER.move_to_zone(context, UTC_ZONE, NOON) is context


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    b"user-agent",
                    b"x-country-code",
                    b"cf-ipcountry",
                    b"accept-language",
                    b"authorization",
                    b"referer",
                ]
            ),
            st.binary(max_size=60),
        ),
        max_size=6,
    ),
    st.binary(max_size=60),
)
def test_any_header_and_query_is_parsed_or_is_a_validation_error(
    headers: list[tuple[bytes, bytes]], query: bytes
) -> None:
    request = FastRequest(b"GET", b"/", query=query, headers=headers)
    try:
        context = PARSER.parse(request, UTC_ZONE, NOON)
    except ValidationFailedError:
        return

    assert context.device in {None, "mobile", "tablet", "desktop"}
