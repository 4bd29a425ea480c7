"""An address is in a set of networks exactly if it is in one of them."""

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from adloom.runtime.http.networks import Address, Network, Networks


def network_around(address: Address, length: int) -> Network:
    return ipaddress.ip_network((address, length % (address.max_prefixlen + 1)), strict=False)


networks = st.builds(network_around, st.ip_addresses(), st.integers(0, 128))


@given(st.lists(networks, max_size=20), st.ip_addresses())
def test_an_address_is_found_exactly_if_one_of_the_networks_contains_it(
    listed: list[Network], address: Address
) -> None:
    nearby = [address, *(network.network_address for network in listed)]
    nearby += [network.broadcast_address for network in listed]

    merged = Networks(listed)

    assert [one in merged for one in nearby] == [any(one in network for network in listed) for one in nearby]
