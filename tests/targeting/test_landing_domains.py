"""The domain that a click leads to is the one that a browser opens: blocks of domains go by it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.targeting.values import encode_host, find_landing_domain, is_below
from tests.support.for_each import for_each


# As `new URL(address).hostname` says in Node 22.
@for_each(
    "address",
    [
        "https://evil.example/",
        "HTTPS://www.Evil.EXAMPLE.:443/a?b#c",
        "https://user:pw@evil.example/@good.example",
        "https://evil.example\\@good.example/",
        "https://ev%69l.example/",
        "https://ⓔvil.example/",
        "https://evil。example/",
        "https://ev%C2%ADil.example/",
        "https://evil.example?@good.example",
        "https://evil.example#@good.example",
    ],
)
def test_a_domain_is_the_one_that_browsers_open(address: str) -> None:
    assert find_landing_domain(address) == "evil.example"


@pytest.mark.parametrize(
    ("address", "domain"),
    [
        ("https://münchen.example/", "xn--mnchen-3ya.example"),
        ("https://[2001:DB8::1]:8443/", "2001:db8::1"),
        ("http://127.0.0.1:8080/", "127.0.0.1"),
        ("no address", None),
        ("", None),
        (None, None),
    ],
)
def test_other_hosts(address: str | None, domain: str | None) -> None:
    assert find_landing_domain(address) == domain


@for_each("listed", ["evil.example", "www.evil.example"])
def test_a_block_is_of_a_domain_and_what_is_below_it_with_www_or_without(listed: str) -> None:
    for host in ("evil.example", "www.evil.example", "shop.evil.example"):
        assert is_below(host, {listed})
    assert not is_below("medevil.example", {listed})


@given(st.text("ab.:@%[]/\\?#é\u00df", max_size=20))
def test_any_address_has_a_domain_or_none(text: str) -> None:
    assert find_landing_domain(f"https://{text}") != ""


@pytest.mark.parametrize(
    ("address", "sent"),
    [
        ("https://bücher.example/ü?q=ü", "https://xn--bcher-kva.example/ü?q=ü"),
        ("https://me:secret@bücher.example:8080#top", "https://me:secret@xn--bcher-kva.example:8080#top"),
        ("https://shop.example/ü", "https://shop.example/ü"),
        ("https://[::1]:80/ü", "https://[::1]:80/ü"),
        ("https://not_a_domain/ü", "https://not_a_domain/ü"),
    ],
)
def test_a_host_is_sent_in_punycode(address: str, sent: str) -> None:
    assert encode_host(address) == sent
