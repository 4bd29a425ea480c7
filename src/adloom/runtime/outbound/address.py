"""Which IP addresses are public, and which hosts are this machine."""

# pure

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address

# Only here is the public internet of IPv6; everything else is local, reserved, or a way to write an IPv4 address.
GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
NAT64: Final = IPv6Network("64:ff9b::/96")
# Ranges that are no public host though `is_global` may say so in some Python version.
NOT_PUBLIC: Final = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("100.64.0.0/10", "shared by customers of a provider"),
        ("192.88.99.0/24", "a relay of 6to4"),
        ("198.18.0.0/15", "for benchmarks"),
        ("2001::/23", "for protocols, such as Teredo"),
        ("2001:db8::/32", "for documentation"),
        ("2002::/16", "an IPv4 address in 6to4"),
        ("3fff::/20", "for documentation"),
    )
)


def is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def find_refusal(address: Address) -> str | None:
    """Return why we do not connect to this address, or None if it is public.

    NAT64 is judged by the IPv4 address in it: networks without IPv4 reach every public host so. All other
    ways to put an IPv4 address into an IPv6 address are refused, whatever is in them.
    """
    if isinstance(address, IPv6Address) and address in NAT64:
        return find_refusal(IPv4Address(int(address) & 0xFFFF_FFFF))
    reasons = (
        (isinstance(address, IPv6Address) and address.scope_id is not None, "of one network only"),
        (address.is_unspecified, "unspecified"),
        (address.is_loopback, "loopback"),
        (address.is_link_local, "link-local"),
        (address.is_multicast, "multicast"),
        *((address in network, reason) for network, reason in NOT_PUBLIC),
        (isinstance(address, IPv6Address) and address.ipv4_mapped is not None, "an IPv4 address in IPv6"),
        (address.is_private or not address.is_global, "private"),
        (
            address.is_reserved
            or (address.version == GLOBAL_UNICAST.version and address not in GLOBAL_UNICAST),
            "reserved",
        ),
    )
    return next((reason for is_so, reason in reasons if is_so), None)
