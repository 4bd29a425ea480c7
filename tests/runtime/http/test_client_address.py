"""An address is parsed as the standard library parses it."""

import ipaddress

from hypothesis import example, given
from hypothesis import strategies as st

from adloom.runtime.http.client_address import parse_address

octets = st.one_of(st.integers(0, 300).map(str), st.sampled_from(["", "01", "0x1", " 1", "1 ", "+1", "٣"]))
texts = st.one_of(
    st.lists(octets, min_size=1, max_size=6).map(".".join),
    st.ip_addresses().map(str),
    st.ip_addresses(v=4).map("::ffff:{}".format),
    st.text(max_size=20),
)


def parse_plainly(text: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return "none"
    return str(getattr(address, "ipv4_mapped", None) or address)


def parse_fast(text: str) -> str:
    try:
        return str(parse_address(text))
    except ValueError:
        return "none"


@given(texts)
@example("1.2.3.4\0")
@example("1.2.3")
@example("\ud800")
def test_an_address_is_what_the_standard_library_says(text: str) -> None:
    assert parse_fast(text) == parse_plainly(text)
