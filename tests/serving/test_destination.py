"""UTM fields are appended without breaking the address."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.query_string import add_parameters


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://shop.example.com/p", "https://shop.example.com/p?utm_source=letter"),
        ("https://shop.example.com/p?size=L", "https://shop.example.com/p?size=L&utm_source=letter"),
        ("https://shop.example.com/p?size=L#top", "https://shop.example.com/p?size=L&utm_source=letter#top"),
        ("https://shop.example.com/p#top", "https://shop.example.com/p?utm_source=letter#top"),
        ("https://shop.example.com/p?q=a%20b+c", "https://shop.example.com/p?q=a%20b+c&utm_source=letter"),
    ],
)
def test_the_address_keeps_its_query_and_fragment_unchanged(address: str, expected: str) -> None:
    assert add_parameters(address, {"utm_source": "letter", "utm_medium": None}) == expected


def test_without_parameters_the_address_is_unchanged() -> None:
    assert add_parameters("https://x.example/?a=1#b", {"utm_source": None}) == "https://x.example/?a=1#b"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_value_can_be_read_back_from_the_query(value: str) -> None:
    address = add_parameters("https://x.example/p?a=1#f", {"utm_source": value})

    assert parse_qsl(urlsplit(address).query, keep_blank_values=True) == [("a", "1"), ("utm_source", value)]
