"""Which hosts are of a site."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.targeting.site_hosts import HostPatternError, SiteHosts, check_host_pattern

LABELS = st.text("abcdefgh0123456789-", min_size=1, max_size=8)


@pytest.mark.parametrize(
    "host", ["a.test", "www.a.test", "news.a.test", "NEWS.A.TEST", "a.test.", "x.y.a.test"]
)
def test_a_domain_and_what_is_below_it_are_of_the_site(host: str) -> None:
    assert SiteHosts("a.test").has(host)


@pytest.mark.parametrize("host", ["", "test", "ba.test", "a.test.evil.example", "a-test", "evil.example"])
def test_other_hosts_are_not(host: str) -> None:
    assert not SiteHosts("a.test").has(host)


def test_a_domain_with_www_is_the_same_without() -> None:
    assert SiteHosts("www.a.test").has("a.test")
    assert SiteHosts("www.a.test").has("www.a.test")


def test_a_pattern_narrows_the_hosts_and_matches_the_whole_name() -> None:
    hosts = SiteHosts("a.test", r"(news|blog)\.a\.test")

    assert hosts.has("news.a.test")
    assert hosts.has("www.news.a.test")
    assert not hosts.has("old.news.a.test")
    assert not hosts.has("a.test")


def test_a_pattern_does_not_widen_them() -> None:
    assert not SiteHosts("a.test", ".*").has("evil.example")


def test_a_pattern_that_names_www_means_the_host_without_it_too() -> None:
    assert SiteHosts("a.test", r"www\.a\.test").has("a.test")


@given(st.lists(LABELS, max_size=4), st.text(max_size=20))
def test_what_is_of_a_site_ends_with_its_domain(labels: list[str], pattern: str) -> None:
    host = ".".join([*labels, "a", "test"])
    try:
        hosts = SiteHosts("a.test", check_host_pattern(pattern))
    except HostPatternError:
        return

    assert not hosts.has(host) or SiteHosts("a.test").has(host)
    assert hosts.has(host) == hosts.has(f"www.{host}")
    assert not hosts.has(f"{host}.evil")


def test_a_pattern_that_would_backtrack_for_ever_does_not() -> None:
    hosts = SiteHosts("a.test", r"(a+)+(b+)+(c+)+\.z")
    host = "a" * 60 + "." + "b" * 60 + ".a.test"

    began = time.process_time()
    assert not any(hosts.has(host) for _ in range(1_000))
    assert time.process_time() - began < 5


@pytest.mark.parametrize("pattern", ["(?=a)", "[", "(a)\\1", "((a{100}){100}){100}", "(?<=a)b"])
def test_what_cannot_be_done_in_linear_time_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(HostPatternError) as refused:
        check_host_pattern(pattern)

    assert str(refused.value)
