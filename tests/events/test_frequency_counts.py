"""Many users are looked up in one call, and only what may matter comes back."""

from datetime import UTC, datetime
from uuid import UUID

from adloom.events.frequency.counts import (
    FIRST_GENERATION,
    BannerFrequency,
    FrequencyCounters,
    make_generation_prefix,
)
from adloom.events.frequency.windows import Window, list_buckets
from adloom.runtime.valkey import Valkey
from tests.support.rows import an_id

NOW = datetime.now(UTC)
BANNER, OTHER_BANNER = an_id(1), an_id(2)
USERS = [(str(an_id(100 + number)),) for number in range(3)]


async def let_see(valkey: Valkey, user: str, banner: UUID, window: Window, times: int) -> None:
    suffix = next(bucket.suffix for bucket in list_buckets(NOW) if bucket.window is window)
    await valkey.hincrby(f"{make_generation_prefix(FIRST_GENERATION)}{user}{suffix}", str(banner), times)


async def test_counts_of_users_are_separate(valkey: Valkey) -> None:
    await let_see(valkey, *USERS[0], BANNER, Window.DAY, 3)
    await let_see(valkey, *USERS[2], OTHER_BANNER, Window.LIFETIME, 9)
    await let_see(valkey, *USERS[2], BANNER, Window.DAY, 4)

    found = await FrequencyCounters(valkey).read(USERS, {Window.DAY: 1, Window.LIFETIME: 1}, NOW)

    assert found == {
        0: [BannerFrequency(Window.DAY, str(BANNER), 3)],
        2: [
            BannerFrequency(Window.DAY, str(BANNER), 4),
            BannerFrequency(Window.LIFETIME, str(OTHER_BANNER), 9),
        ],
    }


async def test_counts_below_the_minimum_are_left_out(valkey: Valkey) -> None:
    await let_see(valkey, *USERS[0], BANNER, Window.DAY, 2)
    await let_see(valkey, *USERS[0], OTHER_BANNER, Window.DAY, 3)
    await let_see(valkey, *USERS[0], BANNER, Window.LIFETIME, 99)

    found = await FrequencyCounters(valkey).read(USERS, {Window.DAY: 3}, NOW)

    assert found == {0: [BannerFrequency(Window.DAY, str(OTHER_BANNER), 3)]}


async def test_without_windows_nothing_is_read(valkey: Valkey) -> None:
    assert await FrequencyCounters(valkey).read(USERS, {}, NOW) == {}


async def test_a_user_who_has_not_seen_the_requested_banners_is_left_out(valkey: Valkey) -> None:
    users = [user for user, *_ in USERS]
    for user in users:
        await let_see(valkey, user, OTHER_BANNER, Window.DAY, 5)
    await let_see(valkey, users[1], BANNER, Window.DAY, 2)
    await let_see(valkey, users[2], BANNER, Window.DAY, 3)
    asked = [(user, str(an_id(3)), str(BANNER)) for user in users]

    found = await FrequencyCounters(valkey).read(asked, {Window.LIFETIME: 1, Window.DAY: 3}, NOW)

    assert {place: sorted(shown) for place, shown in found.items()} == {
        2: [BannerFrequency(Window.DAY, str(BANNER), 3), BannerFrequency(Window.DAY, str(OTHER_BANNER), 5)]
    }
