"""How many requests one client may send, and what counts as one client."""

from datetime import timedelta
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import RateLimitedError
from adloom.runtime.http.client_address import find_client_address, find_rate_limit_key
from adloom.runtime.http.networks import Networks
from adloom.runtime.http.rate_limit import CLIENTS_MAX, RateLimiter, take_permit
from tests.support.builders import NOON
from tests.support.for_each import for_each

PROXIES = Networks([ip_network("10.0.0.0/8"), ip_network("2001:db8::1")])


@given(
    st.integers(min_value=1, max_value=1_000),
    st.lists(st.floats(min_value=0, max_value=120), max_size=200),
)
def test_no_more_requests_pass_than_the_bucket_and_its_refill_allow(permits: int, gaps: list[float]) -> None:
    now, bucket, passed = NOON, None, 0

    for gap in gaps:
        now += timedelta(seconds=gap)
        result = take_permit(bucket, permits_per_minute=permits, now=now)
        bucket = result.bucket
        passed += result.wait_seconds == 0

    elapsed_minutes = (now - NOON).total_seconds() / 60
    assert passed <= permits + elapsed_minutes * permits + 1e-6


@given(st.integers(min_value=1, max_value=1_000))
def test_a_client_that_waits_for_retry_after_may_pass(permits: int) -> None:
    limiter, now = RateLimiter(permits), NOON
    for _ in range(permits):
        limiter.check("a", now=now)

    with pytest.raises(RateLimitedError) as refused:
        limiter.check("a", now=now)

    limiter.check("a", now=now + timedelta(seconds=refused.value.retry_after_seconds))


def test_a_clock_that_goes_back_refills_nothing() -> None:
    limiter = RateLimiter(1)
    limiter.check("a", now=NOON)

    with pytest.raises(RateLimitedError):
        limiter.check("a", now=NOON - timedelta(hours=1))


def test_the_number_of_buckets_is_bounded() -> None:
    limiter = RateLimiter(1)

    for number in range(CLIENTS_MAX + 1):
        limiter.check(str(number), now=NOON)

    limiter.check("0", now=NOON)  # The first one was evicted, so it starts with a full bucket.
    with pytest.raises(RateLimitedError):
        limiter.check(str(CLIENTS_MAX), now=NOON)


@for_each(
    ("peer", "forwarded_for", "expected"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["203.0.113.9"], "192.0.2.1"),
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["1.1.1.1, 203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["1.1.1.1", "203.0.113.9"], "203.0.113.9"),
        # What is left of an entry that cannot be read is the client's word.
        ("10.0.0.1", ["1.1.1.1, nonsense, 10.0.0.2"], "unknown"),
        ("10.0.0.1", ["1.1.1.1, unknown"], "unknown"),
        ("10.0.0.1", ["6.6.6.6, 203.0.113.9:5123"], "203.0.113.9"),
        ("10.0.0.1", ["6.6.6.6, 203.0.113.9:5123:1"], "unknown"),
        ("10.0.0.1", ["6.6.6.6, [2001:db8::7]:443"], "2001:db8::7"),
        ("10.0.0.1", ["6.6.6.6, [2001:db8::7]"], "2001:db8::7"),
        ("10.0.0.1", ["6.6.6.6, [2001:db8::7]x"], "unknown"),
        ("10.0.0.1", ["6.6.6.6, [2001:db8::7"], "unknown"),
        ("10.0.0.1", ['6.6.6.6, "[2001:db8::7]:443"'], "2001:db8::7"),
        ("10.0.0.1", ["203.0.113.9, 10.0.0.2:80"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9, , 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("2001:db8::1", ["2001:db8::2"], "2001:db8::2"),
        (None, ["203.0.113.9"], "unknown"),
    ],
)
def test_the_client_is_the_nearest_address_that_is_not_a_trusted_proxy(
    peer: str | None, forwarded_for: list[str], expected: str
) -> None:
    assert find_client_address(peer, forwarded_for, PROXIES) == expected


@pytest.mark.parametrize(
    ("address", "unit"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("unknown", "unknown"),
    ],
)
def test_an_ipv6_network_counts_as_one_client(address: str, unit: str) -> None:
    assert find_rate_limit_key(address) == unit
