"""The table of addresses that we connect to, and of those that we do not."""

from ipaddress import IPv4Address, IPv6Address, ip_address

from hypothesis import given
from hypothesis import strategies as st

from adloom.runtime.outbound.address import find_refusal
from tests.support.for_each import for_each

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "223.255.255.254",
    "2606:4700::1111",
    "2a00:1450:4001::200e",
    "64:ff9b::808:808",
]
REFUSED = [
    "0.0.0.0",  # noqa: S104 - one of the table
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.170",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700::1111%eth0",
    "fec0::1",
    "ff02::1",
]


@for_each("text", PUBLIC)
def test_a_public_address_is_connected_to(text: str) -> None:
    assert find_refusal(ip_address(text)) is None


@for_each("text", REFUSED)
def test_an_address_that_is_not_public_is_refused_with_a_reason(text: str) -> None:
    assert find_refusal(ip_address(text))


@given(st.ip_addresses(v=4))
def test_an_address_in_another_is_never_more_public_than_by_itself(address: IPv4Address) -> None:
    number, refusal = int(address), find_refusal(address)
    nat64 = find_refusal(IPv6Address((0x64FF9B << 96) | number))
    others = [
        IPv6Address((0xFFFF << 32) | number),
        IPv6Address(number),
        IPv6Address((0x2002 << 112) | (number << 80)),
        IPv6Address((0x2001 << 112) | (number << 64) | (~number & 0xFFFFFFFF)),
    ]

    assert (nat64 is None) == (refusal is None)
    assert all(map(find_refusal, others))


@given(st.ip_addresses(v=6))
def test_only_global_unicast_and_nat64_are_public(address: IPv6Address) -> None:
    is_candidate = int(address) >> 125 == 1 or int(address) >> 32 == 0x64FF9B << 64

    assert is_candidate or find_refusal(address)
