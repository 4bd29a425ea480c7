"""A page has one normalised URL, however its address is written."""

from hypothesis import given
from hypothesis import strategies as st

from adloom.pages.url import (
    NORMALIZED_CHARACTERS_MAX,
    TRACKING_PARAMETERS,
    NormalizedUrl,
    is_host_of,
    normalize_host,
    normalize_url,
)
from tests.support.for_each import for_each

HOSTS = st.sampled_from(
    ["a.test", "www.a.test", "WWW.www.A.test", "www.test", "bücher.example", "xn--bcher-kva.example", "[::1]",
     "127.0.0.1", "a.test.", "a_b.test", "straße.de", "user:secret@a.test", "a.test:80", "a.test:8080", "日本.jp"]
)  # fmt: skip
PIECES = st.sampled_from(
    ["/", "//", "..", ".", "%2e", "%2E%2e", "%", "%4", "%41", "%C3%A4", "ä", "a", "B", " ", "+", "?", "&", "=", ";",
     "utm_source=x", "&ref=1", "&b=2", "&a=1", "%26", "%3f", ";jsessionid=1", "\\", "#", "\t", "\n", "@", ":", "\0", "\ud800", '"']
)  # fmt: skip
ADDRESSES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["http://", "https://", "HTTPS://", " https://", "https:\\\\"]),
    HOSTS,
    st.lists(PIECES, max_size=12).map("".join),
)


@for_each(
    ("address", "text"),
    [
        ("https://www.Example.com/Story/?b=2&a=1#end", "example.com/Story?a=1&b=2"),
        ("http://example.com", "example.com"),
        ("http://example.com/", "example.com"),
        ("http://example.com:80/a", "example.com/a"),
        ("https://example.com:443/a", "example.com/a"),
        ("https://example.com:8443/a", "example.com:8443/a"),
        ("https://example.com/a//", "example.com/a"),
        ("https://example.com/a/./b/../c", "example.com/a/c"),
        ("https://example.com/%7ejo/%c3%a4/%2E%2e/x", "example.com/~jo/x"),
        ("https://example.com/ä b", "example.com/%C3%A4%20b"),
        ("https://example.com/?utm_source=a&UTM_Medium=b&fbclid=1", "example.com"),
        ("https://example.com/a?adloom-preview=abc&adloom-debug&b=1", "example.com/a?b=1"),
        ("https://example.com/a?PHPSESSID=ab12&jsessionid=3&b=1", "example.com/a?b=1"),
        (
            "https://example.com/shop;jsessionid=0A1B!-12/tea;v=2;JSESSIONID=3?b=1",
            "example.com/shop/tea;v=2?b=1",
        ),
        ("https://example.com/;jsessionid=0A1B", "example.com"),
        ("https://example.com/?utm%5Fsource=a&id=7", "example.com?id=7"),
        ("https://example.com/?reference=a", "example.com?reference=a"),
        ("https://example.com/?&&a=1&", "example.com?a=1"),
        ("https://example.com/?tag=b&tag=a", "example.com?tag=a&tag=b"),
        ("https://Bücher.example/", "xn--bcher-kva.example"),
        ("https://straße.de/a", "xn--strae-oqa.de/a"),
        ("https://www.com/a", "www.com/a"),
        ("https://example.com./a", "example.com/a"),
        ("https://me:secret@example.com/a", "example.com/a"),
        ("https://[2001:DB8::1]/a", "[2001:db8::1]/a"),
        ("https://good.test\\@evil.test/a", "good.test/@evil.test/a"),
        ("  https://example.com/a\n", "example.com/a"),
        ("https://exa\nmple.com/a", "example.com/a"),
        ("https://example.com/a%", "example.com/a%25"),
        ("https://example.com/a#b?c=1", "example.com/a"),
    ],
)
def test_an_address_is_normalised(address: str, text: str) -> None:
    url = normalize_url(address)

    assert url is not None
    assert url.text == text


@for_each(
    "address",
    ["", "example.com/a", "ftp://example.com/", "javascript:alert(1)", "https://", "https:///a", "https://?a",
     "https://exa mple.com/", "https://a..test/", "https://-a.test/", "https://a.test:port/", "https://a.test:99999/",
     "https://%61.test/", "https://[::1", "https://[fe80::1%25eth0]/", "https://" + "a" * 64 + ".test/",
     "https://" + "a." * 130 + "test/", "https://a.test/" + "a" * 3_000, "https://a.test/" + "a" * 9_000],
)  # fmt: skip
def test_what_is_no_address_of_a_page_is_refused(address: str) -> None:
    assert normalize_url(address) is None


def test_every_tracking_parameter_is_removed_and_no_other() -> None:
    query = "&".join(f"{name.upper()}=1" for name in sorted(TRACKING_PARAMETERS))

    assert normalize_url(f"https://a.test/?id=1&{query}") == NormalizedUrl("a.test", "a.test?id=1")


@given(
    st.one_of(ADDRESSES, st.text(max_size=60), st.text(max_size=60).map(lambda end: f"https://a.test/{end}"))
)
def test_normalising_twice_changes_nothing(address: str) -> None:
    once = normalize_url(address)

    if once is not None:
        assert normalize_url(f"https://{once.text}") == once
        assert normalize_url(f"http://{once.text}") == once
        assert once.text.isascii()
        assert once.text.isprintable()
        assert once.text.startswith(once.host)
        assert len(once.text) <= NORMALIZED_CHARACTERS_MAX


@given(st.text(max_size=300))
def test_arbitrary_text_is_normalised_or_refused(text: str) -> None:
    for address in (text, f"https://{text}", f"https://a.test/{text}", f"https://a.test/?{text}"):
        url = normalize_url(address)

        assert url is None or normalize_host(url.host) == url.host


def test_hosts_of_a_domain_are_itself_and_those_below_it() -> None:
    assert is_host_of("a.test", "a.test")
    assert is_host_of("blog.a.test", "a.test")
    assert not is_host_of("ba.test", "a.test")
    assert not is_host_of("a.test", "blog.a.test")
