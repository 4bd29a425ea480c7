"""Device and country of an event, from its request by the same rules as in serving."""

import ipaddress

import pytest

from adloom.events.ingest.accept import RequestInfo
from adloom.runtime.geoip import Countries, IPAddress
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.request.context import ContextParser

PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148"


def in_france(address: IPAddress) -> str | None:
    return "FR" if str(address) == "8.8.8.8" else None


PARSER = ContextParser(Countries(in_france), trusted=[ipaddress.ip_network("192.0.2.0/24")])


def request_info(client: str = "127.0.0.1", **headers: str) -> RequestInfo:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return PARSER.read_request_info(FastRequest(b"GET", b"/i/x", headers=pairs, client=client))


def test_a_request_without_headers_has_neither_device_nor_country() -> None:
    assert request_info() == RequestInfo(None, None)


def test_the_device_comes_from_the_user_agent() -> None:
    assert request_info(user_agent=PHONE).device_type == "mobile"


@pytest.mark.parametrize(
    ("headers", "country"),
    [
        ({"x_country_code": "de", "cf_ipcountry": "AT"}, "DE"),
        ({"x_country_code": "XX", "cf_ipcountry": "AT"}, "AT"),
        ({"x_country_code": "nowhere"}, None),
    ],
)
def test_the_country_comes_from_the_headers_of_a_proxy(headers: dict[str, str], country: str | None) -> None:
    assert request_info(**headers).country_code == country


def test_without_a_header_the_country_is_that_of_the_clients_address() -> None:
    assert request_info("8.8.8.8").country_code == "FR"
    assert request_info("192.0.2.1", x_forwarded_for="8.8.8.8").country_code == "FR"
    assert request_info("8.8.8.8", cf_ipcountry="AT").country_code == "AT"
