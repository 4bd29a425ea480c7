"""Failed attempts to log in are counted by all control processes together, and by each alone while Valkey is away."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from adloom.core.errors import RateLimitedError
from adloom.identity.attempt_limiter import SharedAttemptLimiter
from adloom.runtime.ports import find_port
from adloom.runtime.valkey import Valkey, open_valkey

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
SECRET = "a-secret-of-the-tests-that-is-long-enough"
TRIED = "somebody@example.com"
AT_ONCE, PER_MINUTE = 4, 2


@pytest.fixture
async def valkey(redis_url: str) -> AsyncIterator[Valkey]:
    async with open_valkey(redis_url) as client:
        yield client


def make_attempt_limiter(valkey: Valkey, name: str = "passwords") -> SharedAttemptLimiter:
    return SharedAttemptLimiter(valkey, name, secret=SECRET, at_once_max=AT_ONCE, per_minute=PER_MINUTE)


async def take_all(
    *limiters: SharedAttemptLimiter, now: datetime = NOON, tried: str = TRIED
) -> tuple[int, int]:
    """Try at one process after another until one refuses; return how many were free, and the seconds to wait."""
    for number in range(100):
        try:
            await limiters[number % len(limiters)].take(tried, now=now)
        except RateLimitedError as error:
            return number, error.retry_after_seconds
    pytest.fail("nothing was refused")


async def test_attempts_at_one_process_count_at_the_others(valkey: Valkey) -> None:
    one, other, third = (make_attempt_limiter(valkey) for _ in range(3))

    assert await take_all(one, other) == (AT_ONCE, 31)
    for attempts in (one, other, third):
        assert (await take_all(attempts))[0] == 0
    assert (await take_all(third, tried="nobody@example.com"))[0] == AT_ONCE
    assert (await take_all(make_attempt_limiter(valkey, "codes")))[0] == AT_ONCE
    # One is back after half a minute, for all of them together, and all after two minutes.
    assert (await take_all(third, one, now=NOON + timedelta(seconds=30)))[0] == 1
    assert (await take_all(other, third, now=NOON + timedelta(minutes=10)))[0] == AT_ONCE


async def test_a_right_attempt_is_given_back_to_all(valkey: Valkey) -> None:
    one, other = make_attempt_limiter(valkey), make_attempt_limiter(valkey)

    for _ in range(3 * AT_ONCE):
        await one.take(TRIED, now=NOON)
        await one.give_back(TRIED)

    assert (await take_all(other))[0] == AT_ONCE


async def test_a_clock_that_is_behind_waits_no_longer_than_all_attempts_take(valkey: Valkey) -> None:
    ahead, behind = make_attempt_limiter(valkey), make_attempt_limiter(valkey)
    await take_all(ahead, now=NOON + timedelta(hours=1))

    assert await take_all(behind) == (0, 31)


async def test_valkey_has_no_name_and_forgets(valkey: Valkey) -> None:
    await make_attempt_limiter(valkey).take(TRIED, now=NOON)

    [key] = await valkey.keys("adloom:attempts:*")
    assert TRIED not in str(key)
    assert 0 < await valkey.pttl(key) <= AT_ONCE * 30_000


async def test_each_process_counts_alone_while_valkey_is_away(valkey: Valkey) -> None:
    async with open_valkey(f"redis://127.0.0.1:{find_port()}") as away:
        attempts = make_attempt_limiter(away)
        assert (await take_all(attempts))[0] == AT_ONCE
        await attempts.give_back(TRIED)
        await attempts.take(TRIED, now=NOON)

    assert (await take_all(make_attempt_limiter(valkey)))[0] == AT_ONCE
