"""What a request tells of an event's reader: the same as serving reads from it."""

import ipaddress

import pytest

from adloom.events.ingest.accept import RequestInfo
from adloom.runtime.geoip import Countries, IPAddress
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.request.context import ContextParser

PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148"


def in_france(address: IPAddress) -> str | None:
    return "FR" if str(address) == "8.8.8.8" else None


READER = ContextParser(Countries(in_france), trusted=[ipaddress.ip_network("192.0.2.0/24")])


def circumstances(client: str = "127.0.0.1", **headers: str) -> RequestInfo:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return READER.read_request_info(FastRequest(b"GET", b"/i/x", headers=pairs, client=client))


def test_nothing_is_known_of_a_request_that_tells_nothing() -> None:
    assert circumstances() == RequestInfo(None, None)


def test_the_device_is_that_of_the_user_agent() -> None:
    assert circumstances(user_agent=PHONE).device_type == "mobile"


@pytest.mark.parametrize(
    ("headers", "country"),
    [
        ({"x_country_code": "de", "cf_ipcountry": "AT"}, "DE"),
        ({"x_country_code": "XX", "cf_ipcountry": "AT"}, "AT"),
        ({"x_country_code": "nowhere"}, None),
    ],
)
def test_the_country_is_what_a_proxy_says(headers: dict[str, str], country: str | None) -> None:
    assert circumstances(**headers).country_code == country


def test_where_no_proxy_says_it_the_country_is_that_of_the_client_s_address() -> None:
    assert circumstances("8.8.8.8").country_code == "FR"
    assert circumstances("192.0.2.1", x_forwarded_for="8.8.8.8").country_code == "FR"
    assert circumstances("8.8.8.8", cf_ipcountry="AT").country_code == "AT"
