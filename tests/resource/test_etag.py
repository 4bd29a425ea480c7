"""ETags: an entity that has changed since it was read is not overwritten."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from adloom.core.errors import StaleWriteError, ValidationFailedError
from adloom.resource.etag import Precondition, format_etag, move_forward, parse_if_match
from tests.support.builders import NOON, Json, a_campaign
from tests.support.control import Client, ControlPlane, error_fields, problem
from tests.support.for_each import for_each

LATER = "2026-11-15T12:00:00.000001Z"
STALE = '"2026-11-15T11:59:59Z"'

moments = st.datetimes(datetime(1970, 1, 1), datetime(2999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - aware by `timezones`


@given(moments)
def test_an_etag_names_its_state(moment: datetime) -> None:
    assert parse_if_match(format_etag(moment)) == Precondition(frozenset({moment}))


@given(st.lists(moments, min_size=1, max_size=4), st.sampled_from([",", ", ", " ,\t"]))
def test_a_list_of_etags_allows_each_of_their_states(states: list[datetime], comma: str) -> None:
    assert parse_if_match(comma.join(map(format_etag, states))) == Precondition(frozenset(states))


@pytest.mark.parametrize("header", [None, "*", " * "])
def test_any_state_matches_without_an_etag(header: str | None) -> None:
    parse_if_match(header).check(a_campaign())


@pytest.mark.parametrize("header", ['"whatever"', 'W/"2026-11-15T12:00:00Z"', '""', '"2026-11-15T12:00:00"'])
def test_a_foreign_etag_matches_nothing(header: str) -> None:
    with pytest.raises(StaleWriteError):
        parse_if_match(header).check(a_campaign())


def test_the_same_time_in_another_zone_is_the_same_state() -> None:
    parse_if_match('"2026-11-15T14:00:00+02:00"').check(a_campaign())


@for_each("header", ["", "x", "2026-11-15T12:00:00Z", '"a" "b"', '"a",', '"a', "*, *", 'w/"a"'])
def test_an_invalid_list_of_etags_is_refused(header: str) -> None:
    with pytest.raises(ValidationFailedError):
        parse_if_match(header)


@given(moments, moments)
def test_every_write_increases_updated_at(before: datetime, after: datetime) -> None:
    old, new = (replace(a_campaign(), updated_at=moment) for moment in (before, after))

    moved = move_forward(old, new)

    assert moved.updated_at > old.updated_at
    assert moved.updated_at in {after, before + timedelta(microseconds=1)}


def test_an_etag_is_always_in_utc() -> None:
    assert format_etag(NOON.astimezone(timezone(timedelta(hours=5)))) == '"2026-11-15T12:00:00Z"'


async def everything(client: Client) -> dict[str, Json]:
    campaign, placement, banner = (
        await client.make_campaign(),
        await client.make_placement(),
        await client.make_banner(),
    )
    links = f"/admin/campaigns/{campaign['id']}/placements"
    link = await client.link(campaign, placement)
    assignment = await client.assign(campaign, placement, banner)
    return {
        f"/admin/campaigns/{campaign['id']}": campaign,
        f"/admin/placements/{placement['id']}": placement,
        f"/admin/banners/{banner['id']}": banner,
        f"{links}/{placement['id']}": link,
        f"{links}/{placement['id']}/banners/{banner['id']}": assignment,
    }


async def test_an_answer_with_one_entity_has_its_updated_at_as_etag(admin: Client) -> None:
    answers = [
        await admin.post("/admin/campaigns", json={"name": "A"}),
        await admin.patch(f"/admin/banners/{(await admin.make_banner())['id']}", json={"title": "B"}),
        await admin.get(f"/admin/placements/{(await admin.make_placement())['id']}"),
    ]

    assert [answer.headers["etag"] for answer in answers] == [
        f'"{answer.json()["updatedAt"]}"' for answer in answers
    ]
    assert "etag" not in (await admin.get("/admin/campaigns")).headers


async def test_a_stale_etag_changes_and_deletes_nothing(admin: Client) -> None:
    things = await everything(admin)

    for path in things:
        for method in ("PATCH", "DELETE"):
            body: Json | None = {} if method == "PATCH" else None
            answer = await admin.request(method, path, json=body, headers={"If-Match": STALE})

            problem(answer, 409, "STALE_WRITE")


async def test_a_current_etag_allows_changes_and_deletions(admin: Client) -> None:
    things = await everything(admin)

    for path, thing in reversed(things.items()):
        tag = f'"{thing["updatedAt"]}"'
        changed = await admin.patch(path, json={}, headers={"If-Match": tag})
        deleted = await admin.delete(path, headers={"If-Match": changed.headers["etag"]})

        assert (changed.status_code, deleted.status_code) == (200, 204), path


@pytest.mark.parametrize("move", ["activate", "pause", "end", "cancel", "schedule", "unschedule"])
async def test_moves_of_a_campaign_check_the_etag(move: str, admin: Client) -> None:
    campaign = await admin.make_campaign()

    answer = await admin.patch(f"/admin/campaigns/{campaign['id']}/{move}", headers={"If-Match": STALE})

    problem(answer, 409, "STALE_WRITE")


async def test_restoring_and_switching_check_the_etag(admin: Client) -> None:
    banner = await admin.make_banner()
    path = f"/admin/banners/{banner['id']}"

    for method, move in [("PATCH", "activate"), ("PATCH", "deactivate"), ("POST", "restore")]:
        problem(
            await admin.request(method, f"{path}/{move}", headers={"If-Match": STALE}), 409, "STALE_WRITE"
        )


async def test_a_body_may_name_the_expected_updated_at(admin: Client) -> None:
    for path, thing in (await everything(admin)).items():
        stale = await admin.patch(path, json={"isActive": False, "updatedAt": LATER})
        fresh = await admin.patch(path, json={"updatedAt": thing["updatedAt"]})

        if "campaigns" not in path or "placements" in path:
            problem(stale, 409, "STALE_WRITE")
        assert fresh.status_code == 200, fresh.text
        assert fresh.json()["updatedAt"] == thing["updatedAt"]


async def test_an_updated_at_that_is_not_a_time_is_refused(admin: Client) -> None:
    banner = await admin.make_banner()

    for moment in (None, 7, "now", "2026-11-15T12:00:00"):
        answer = await admin.patch(f"/admin/banners/{banner['id']}", json={"updatedAt": moment})

        assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"updatedAt"}


async def test_writes_at_the_same_time_have_different_etags(admin: Client) -> None:
    """The clock of the tests does not advance."""
    banner = await admin.make_banner()
    path = f"/admin/banners/{banner['id']}"

    tags = [(await admin.patch(path, json={"priority": n})).headers["etag"] for n in range(1, 4)]

    assert tags == [f'"2026-11-15T12:00:00.00000{n}Z"' for n in range(1, 4)]
    assert (await admin.get(path)).headers["etag"] == tags[-1]


async def test_only_one_of_many_concurrent_writers_of_one_state_succeeds(
    admin: Client, control: ControlPlane
) -> None:
    banner = await admin.make_banner()
    path = f"/admin/banners/{banner['id']}"
    tag = f'"{banner["updatedAt"]}"'

    async def race(number: int) -> httpx.Response:
        client = control.client(Authorization=admin.headers["authorization"])
        async with client:
            return await client.patch(path, json={"priority": number}, headers={"If-Match": tag})

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(race(number)) for number in range(1, 9)]

    answers = [task.result() for task in tasks]
    winners = [answer for answer in answers if answer.status_code == 200]
    assert len(winners) == 1
    assert {answer.status_code for answer in answers} == {200, 409}
    assert (await admin.get(path)).json() == winners[0].json()


async def test_the_last_write_wins_without_an_etag(admin: Client) -> None:
    banner = await admin.make_banner()

    for title in ("A", "B"):
        answer = await admin.patch(f"/admin/banners/{banner['id']}", json={"title": title})
        assert answer.json()["title"] == title


async def test_an_etag_does_not_matter_for_a_creation(admin: Client) -> None:
    campaign, placement = await admin.make_campaign(), await admin.make_placement()

    answer = await admin.post(
        f"/admin/campaigns/{campaign['id']}/placements",
        json={"placementId": placement["id"]},
        headers={"If-Match": STALE},
    )

    assert answer.status_code == 201
