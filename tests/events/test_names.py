"""Names of events have no user in them."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.ids import digest_user
from adloom.events.log.names import hide_user
from adloom.runtime import migrate
from adloom.runtime.postgres import Pool, open_pool
from tests.events.builders import BANNER, USER
from tests.support.migrating import go_back_to

OLD_NAME = f"ad:{BANNER}:{USER}:2026-11-15T12:00:00+00:00"


@given(
    user=st.uuids(),
    spelling=st.sampled_from(["plain", "hex", "upper"]),
    before=st.text(max_size=20),
    after=st.text(max_size=20),
)
def test_a_name_never_contains_its_user(user: UUID, spelling: str, before: str, after: str) -> None:
    spelled = {"plain": str(user), "hex": user.hex, "upper": str(user).upper()}[spelling]
    name = before + spelled + after

    hidden = hide_user(name, user)

    assert user.hex not in hidden.replace("-", "").lower()
    assert len(hidden) <= 128
    assert hidden == hide_user(name, user), "a name that comes again is the same"
    assert hide_user(hidden, user) == hidden


@given(name=st.text(max_size=128))
def test_other_names_stay_as_they_are(name: str) -> None:
    assert hide_user(name, USER) == name


@pytest.fixture
async def old(database_url: str) -> AsyncIterator[Pool]:
    await go_back_to(database_url, "0011")
    async with open_pool(database_url, size_max=2) as pool:
        yield pool


async def test_the_migration_hides_users_in_names_and_in_the_list_of_erased_users(
    old: Pool, database_url: str
) -> None:
    at = datetime(2026, 11, 14, tzinfo=UTC)
    custom = f"Me-{str(USER).upper()}"
    await old.execute("SELECT ensure_event_day('events', $1)", at.date())
    await old.executemany(
        """
        INSERT INTO events.banner_clicks (
            correlation_id, banner_id, placement_id, user_id, occurred_at, received_at, entry_ms, entry_seq
        ) VALUES ($1, 1, 1, $2, $3, $3, 1, 1)
        """,
        [(OLD_NAME, None, at), (custom, USER, at), ("plain", USER, at), ("nobody", None, at)],
    )
    await old.execute("INSERT INTO erased_users VALUES ($1, $2)", USER, at)

    await migrate.upgrade(database_url)

    names = {row[0] for row in await old.fetch("SELECT correlation_id FROM events.banner_clicks")}
    assert names == {hide_user(OLD_NAME, USER), hide_user(custom, USER), "plain", "nobody"}
    [erased] = await old.fetch("SELECT * FROM erased_users")
    assert dict(erased) == {"user_digest": digest_user(USER), "erased_at": at}
