"""API keys of servers that report for their visitors, as delivery knows them."""

from uuid import UUID, uuid4

import pytest

from adloom.core.caller import Role
from adloom.core.clock import SystemClock
from adloom.core.errors import ForbiddenError, UnauthenticatedError
from adloom.core.ids import CampaignId, PlacementId
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.background.reporter_keys import ReporterKeys
from adloom.serving.index.index import EMPTY
from tests.support.builders import Json
from tests.support.control import Client
from tests.support.for_each import for_each


@pytest.fixture
def refresher(pool: Pool, valkey: Valkey) -> IndexRefresher:
    return IndexRefresher(pool, valkey, SystemClock())


@pytest.fixture
def keys(pool: Pool, refresher: IndexRefresher) -> ReporterKeys:
    return ReporterKeys(pool, refresher.get_current)


def ask(keys: ReporterKeys, headers: dict[str, str], placement: Json) -> bool:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    request = FastRequest(b"POST", b"/banners/events/impression", headers=pairs)
    return keys.is_reporter(request, PlacementId(UUID(placement["id"])))


def ask_about(keys: ReporterKeys, key: str | None, campaign: Json) -> bool:
    headers = [] if key is None else [(b"x-api-key", key.encode())]
    request = FastRequest(b"POST", b"/events/conversion", headers=headers)
    return keys.is_conversion_reporter(request, CampaignId(UUID(campaign["id"])))


async def make_key(admin: Client, role: Role, account: Json | None = None) -> tuple[str, str]:
    body = {"name": "A server", "role": role, "accountId": account and account["id"]}
    made = await admin.made("/admin/api-keys", {name: value for name, value in body.items() if value})
    return made["id"], made["key"]


async def test_a_key_reports_for_the_placements_of_its_owner(
    admin: Client, keys: ReporterKeys, refresher: IndexRefresher
) -> None:
    publisher = await admin.make_publisher()
    own, foreign = await admin.make_placement(publisherId=publisher["id"]), await admin.make_placement()
    _, of_admin = await make_key(admin, Role.ADMIN)
    _, of_publisher = await make_key(admin, Role.PUBLISHER, publisher)
    _, of_advertiser = await make_key(admin, Role.ADVERTISER, await admin.make_advertiser())
    _, of_viewer = await make_key(admin, Role.VIEWER)
    await keys.refresh()
    await refresher.refresh()

    assert ask(keys, {"x-api-key": of_admin}, foreign)
    assert ask(keys, {"authorization": f"Bearer {of_admin}"}, foreign)
    assert ask(keys, {"x-api-key": of_publisher}, own)
    for key, placement in ((of_publisher, foreign), (of_advertiser, own), (of_viewer, own)):
        with pytest.raises(ForbiddenError):
            ask(keys, {"x-api-key": key}, placement)


async def test_a_key_reports_conversions_of_the_campaigns_of_its_owner(
    admin: Client, keys: ReporterKeys, refresher: IndexRefresher
) -> None:
    advertiser, publisher = await admin.make_advertiser(), await admin.make_publisher()
    own, foreign = await admin.make_campaign(advertiserId=advertiser["id"]), await admin.make_campaign()
    _, of_admin = await make_key(admin, Role.ADMIN)
    _, of_advertiser = await make_key(admin, Role.ADVERTISER, advertiser)
    _, of_publisher = await make_key(admin, Role.PUBLISHER, publisher)
    await keys.refresh()
    await refresher.refresh()

    assert ask_about(keys, of_admin, foreign)
    assert ask_about(keys, of_advertiser, own)
    assert not ask_about(keys, None, own)
    for key, campaign in ((of_advertiser, foreign), (of_publisher, own)):
        with pytest.raises(ForbiddenError):
            ask_about(keys, key, campaign)


async def test_a_key_reports_for_what_was_made_since_the_keys_were_read(
    admin: Client, keys: ReporterKeys, refresher: IndexRefresher
) -> None:
    advertiser, publisher = await admin.make_advertiser(), await admin.make_publisher()
    _, of_advertiser = await make_key(admin, Role.ADVERTISER, advertiser)
    _, of_publisher = await make_key(admin, Role.PUBLISHER, publisher)
    await keys.refresh()
    await refresher.refresh()

    placement = await admin.make_placement(publisherId=publisher["id"])
    campaign = await admin.make_campaign(advertiserId=advertiser["id"])
    await refresher.refresh()

    assert ask(keys, {"x-api-key": of_publisher}, placement)
    assert ask_about(keys, of_advertiser, campaign)


async def test_a_key_reports_late_conversions_until_its_account_is_deleted(
    admin: Client, keys: ReporterKeys, refresher: IndexRefresher
) -> None:
    advertiser = await admin.make_advertiser()
    campaign = await admin.make_campaign(advertiserId=advertiser["id"])
    _, key = await make_key(admin, Role.ADVERTISER, advertiser)
    await admin.delete(f"/admin/campaigns/{campaign['id']}")
    await keys.refresh()
    await refresher.refresh()
    assert ask_about(keys, key, campaign), "the click was before the campaign was deleted"

    await admin.delete(f"/admin/advertisers/{advertiser['id']}")
    await keys.refresh()

    with pytest.raises(ForbiddenError):
        ask_about(keys, key, campaign)


async def test_a_revoked_key_reports_nothing(
    admin: Client, keys: ReporterKeys, refresher: IndexRefresher
) -> None:
    placement = await admin.make_placement()
    key_id, key = await make_key(admin, Role.ADMIN)
    await keys.refresh()
    await refresher.refresh()
    assert ask(keys, {"x-api-key": key}, placement)

    await admin.delete(f"/admin/api-keys/{key_id}")
    await keys.refresh()

    with pytest.raises(UnauthenticatedError):
        ask(keys, {"x-api-key": key}, placement)


@for_each(
    "headers",
    [
        {},
        {"authorization": "Bearer eyJ.x.y"},
        {"authorization": "Basic abc"},
        {"x-api-key": "not one of ours"},
    ],
)
async def test_other_credentials_are_no_key(headers: dict[str, str], pool: Pool) -> None:
    assert not ask(ReporterKeys(pool, lambda: EMPTY), headers, {"id": str(uuid4())})


async def test_a_key_that_is_much_too_long_is_refused(pool: Pool) -> None:
    with pytest.raises(UnauthenticatedError):
        ask(ReporterKeys(pool, lambda: EMPTY), {"x-api-key": "adk_" + "x" * 10_000}, {"id": str(uuid4())})
