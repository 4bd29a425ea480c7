"""Sitemaps that nobody should send: each is read as far as it goes, and none raises."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.pages.crawl.sitemaps import read_sitemap

ENTRY = b"<url><loc>https://a.test/1</loc></url>"


@given(
    st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(lambda rest: b"<urlset>" + ENTRY + rest))
)
def test_no_bytes_raise(body: bytes) -> None:
    read_sitemap(body)
    read_sitemap(gzip.compress(body))


@pytest.mark.parametrize("encoding", ["no-such", "utf-7", "idna", "base64", "utf-32"])
def test_an_encoding_that_cannot_be_read_is_a_reason_and_no_error(encoding: str) -> None:
    body = b'<?xml version="1.0" encoding="' + encoding.encode() + b'"?><urlset>' + ENTRY + b"</urlset>"

    assert read_sitemap(body).reason == "It is no whole XML document."
