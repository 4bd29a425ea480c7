"""What makes traffic doubtful, mark by mark."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.events.ingest.ivt.flags import (
    NO_FLAGS,
    Sender,
    TrafficFlags,
    add_header_marks,
    build_flags,
    describe_sender,
    is_prefetch,
    truncate_address,
)
from adloom.events.log.event import Mark
from adloom.runtime.http.networks import Networks
from tests.support.for_each import for_each

HOME = ipaddress.ip_address("203.0.113.7")
CLOUD = ipaddress.ip_address("198.51.100.7")
CLOUDS = Networks([ipaddress.ip_network("198.51.100.0/24"), ipaddress.ip_network("127.0.0.9")])
A_VISITOR = describe_sender(HOME, data_centers=CLOUDS)
A_MACHINE = describe_sender(CLOUD, data_centers=CLOUDS)


def test_a_visitor_gets_no_flags() -> None:
    assert build_flags(A_VISITOR, is_flood=False) is NO_FLAGS
    assert add_header_marks(A_VISITOR, is_crawler=False, is_prefetch=False) is A_VISITOR


def test_a_crawler_is_marked_and_its_address_is_not_kept() -> None:
    crawler = add_header_marks(A_VISITOR, is_crawler=True, is_prefetch=False)

    assert build_flags(crawler, is_flood=False) == TrafficFlags((Mark.CRAWLER,), None)


def test_a_prefetch_is_marked_and_its_address_is_not_kept() -> None:
    ahead = add_header_marks(A_VISITOR, is_crawler=False, is_prefetch=True)

    assert build_flags(ahead, is_flood=False) == TrafficFlags((Mark.PREFETCH,), None)


def test_a_data_centre_is_marked_with_its_network() -> None:
    assert build_flags(A_MACHINE, is_flood=False) == TrafficFlags((Mark.DATA_CENTER,), "198.51.100.0/24")


def test_a_flood_is_marked_with_its_network() -> None:
    assert build_flags(A_VISITOR, is_flood=True) == TrafficFlags((Mark.ADDRESS_FLOOD,), "203.0.113.0/24")


def test_an_event_gets_the_marks_of_all_reasons() -> None:
    sender = add_header_marks(A_MACHINE, is_crawler=True, is_prefetch=True)

    assert build_flags(sender, is_flood=True) == TrafficFlags(
        (Mark.CRAWLER, Mark.PREFETCH, Mark.DATA_CENTER, Mark.ADDRESS_FLOOD), "198.51.100.0/24"
    )


@for_each(
    ("purposes", "is_ahead"),
    [
        ([b"prefetch"], True),
        ([b"prefetch;prerender"], True),
        ([b"Prerender"], True),
        ([b"", b"prefetch"], True),
        ([b"", b"", b"PREFETCH;anonymous-client-ip"], True),
        ([], False),
        ([b"", b"preview"], False),
        ([b"pre fetch"], False),
    ],
)
def test_purpose_headers_identify_a_prefetch(purposes: list[bytes], is_ahead: bool) -> None:  # noqa: FBT001 - a case
    assert is_prefetch(purposes) is is_ahead


@for_each(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.31.255.255",
        "192.168.0.9",
        "169.254.1.1",
        "100.64.0.1",
        "::1",
        "fd00::1",
        "fe80::1%eth0",
    ],
)
def test_an_internal_address_is_not_counted(address: str) -> None:
    assert describe_sender(ipaddress.ip_address(address), data_centers=CLOUDS).rate_key is None


@pytest.mark.parametrize("address", ["172.32.0.0", "203.0.113.7", "8.8.8.8"])
def test_an_ipv4_address_is_counted_by_itself(address: str) -> None:
    sender = describe_sender(ipaddress.ip_address(address), data_centers=CLOUDS)

    assert sender.rate_key == ipaddress.ip_address(address).packed


def test_an_ipv6_network_is_counted_as_one_sender() -> None:
    one, neighbour, other = (
        describe_sender(ipaddress.ip_address(address), data_centers=CLOUDS).rate_key
        for address in ("2001:db8:1:2::1", "2001:db8:1:2:ffff::", "2001:db8:1:3::1")
    )

    assert one == neighbour
    assert one != other


def test_a_listed_network_is_a_data_centre_even_if_it_is_internal() -> None:
    within = ipaddress.ip_address("127.0.0.9")

    assert describe_sender(within, data_centers=CLOUDS) == Sender((Mark.DATA_CENTER,), within, None)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.7", "203.0.113.0/24"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"),
        ("::1", "::/48"),
        ("fe80::1%eth0", "fe80::/48"),
    ],
)
def test_only_the_network_of_an_address_is_kept(address: str, network: str) -> None:
    assert truncate_address(ipaddress.ip_address(address)) == network


@given(st.ip_addresses())
def test_a_kept_network_contains_its_address_and_hides_the_host(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    network = ipaddress.ip_network(truncate_address(address))

    assert address in network
    assert network.prefixlen == (24 if address.version == 4 else 48)
