"""Law 9: one account can neither read nor change another's data, on any route.

The walk takes its routes from the API's own description, so a new route is walked as soon as it is there.
"""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from adloom.app.control import build_openapi_document
from adloom.core.caller import Caller, Role
from adloom.core.ids import BannerId, CampaignId, SystemIds
from adloom.events.log.event import Mark
from adloom.runtime.auth.access_token import issue_access_token
from adloom.runtime.postgres import Pool
from tests.catalog.asset_files import SVG
from tests.events.builders import a_bid, an_auction
from tests.support.auctions import apply_auctions
from tests.support.control import SECRET, Client, ControlPlane, problem
from tests.support.event_rows import EventRows

PARAMETER = re.compile(r"\{(\w+)\}")
TABLES = (
    "advertisers",
    "publishers",
    "sites",
    "site_pages",
    "site_crawls",
    "brands",
    "placements",
    "banners",
    "campaigns",
    "campaign_placements",
    "banner_assignments",
    "creatives",
    "campaign_targeting_rules",
    "frequency_caps",
    "auction.auctions",
    "api_keys",
    "users",
    "account_links",
    "erased_users",
    "assets",
    "saved_reports",
)
# Entities without an owner, which every account may read.
SHARED = {("GET", "/admin/references/{kind}")}
STOLEN: dict[str, dict[str, Any]] = {
    "/admin/advertisers": {"name": "Made up"},
    "/admin/advertisers/{advertiser_id}": {"name": "Stolen"},
    "/admin/advertisers/{advertiser_id}/budget": {"dailyBudgetPaisa": 1},
    "/admin/publishers": {"name": "Made up"},
    "/admin/publishers/{publisher_id}": {"name": "Stolen"},
    "/admin/sites/{site_id}": {"name": "Stolen"},
    "/admin/sites/{site_id}/pages": {"url": "https://{domain}/stolen", "text": "Stolen."},
    "/admin/sites/{site_id}/approvals": {"decision": "approve", "bannerIds": [str(SystemIds().make())]},
    "/admin/references/{kind}": {"id": 8, "label": "Made up"},
    "/admin/targeting-rules/{rule_id}": {"value": ["AT"]},
    "/api/v1/admin/frequency/caps": {"adId": "{banner_id}", "maxImpressionsPerUser": 1},
    "/api/v1/admin/budget/campaigns/{campaign_id}/reset": {"reason": "Mine now"},
    "/admin/campaigns/{campaign_id}/refunds": {"amountPaisa": 1, "reason": "Mine now"},
    "/admin/campaigns/{campaign_id}/what-if": {"bidAmount": 2},
    "/admin/accounts/{person_id}": {"email": "stolen@example.com"},
    "/admin/accounts/{person_id}/password": {"password": "a stolen password"},
    "/admin/accounts/{person_id}/role": {"role": "admin"},
    "/admin/banners/{banner_id}/preview-link": {"placementId": "{placement_id}"},
    "/admin/saved-reports": {"name": "Made up"},
    "/admin/saved-reports/{report_id}": {"name": "Stolen"},
    "/admin/banners/{banner_id}/schedule": {"expiresAt": "2026-11-01T00:00:00Z"},
    "/admin/placements/{placement_id}": {"label": "Stolen", "isActive": False},
    "/admin/banners/{banner_id}": {"title": "Stolen", "isActive": False},
    "/admin/campaigns/{campaign_id}": {"name": "Stolen"},
    "/admin/campaigns/{campaign_id}/duplicate": {"name": "Stolen"},
    "/admin/campaigns/{campaign_id}/schedule": {"startsAt": "2026-12-01T00:00:00Z"},
    "/admin/campaigns/{campaign_id}/creatives": {"bannerId": "{banner_id}"},
    "/admin/campaigns/{campaign_id}/placements": {"placementId": "{placement_id}"},
    "/admin/campaigns/{campaign_id}/placements/{placement_id}": {"isActive": False},
    "/admin/campaigns/{campaign_id}/placements/{placement_id}/banners": {"bannerId": "{banner_id}"},
    "/admin/campaigns/{campaign_id}/placements/{placement_id}/banners/{banner_id}": {"weight": 1},
    "/admin/placements/{placement_id}/links/{campaign_id}": {"decision": "accept"},
    "/admin/placements/{placement_id}/tag-check": {"url": "https://{domain}/"},
    "/admin/placements/{placement_id}/links/{campaign_id}/banners/{banner_id}": {"decision": "refuse"},
}

# Changes nothing: a viewer may.
PREVIEW_LINK = ("POST", "/admin/banners/{banner_id}/preview-link")
# What advertisers may ask for is shown to all of them.
OFFERED = "/admin/offered-placements"


def paths() -> dict[str, Any]:
    return build_openapi_document()["paths"]


def operations() -> list[tuple[str, str]]:
    return [
        (method.upper(), path)
        for path, described in paths().items()
        for method in described
        if path.startswith(("/admin", "/api/v1/admin"))
    ]


def on_one_thing() -> list[tuple[str, str]]:
    return [(method, path) for method, path in operations() if "{" in path and (method, path) not in SHARED]


def is_stream(path: str) -> bool:
    """Return whether an answer is endless: `tests/stats/test_spend_stream.py` reads it."""
    return "text/event-stream" in paths()[path]["get"]["responses"]["200"].get("content", {})


def lists() -> list[str]:
    found = [path for method, path in operations() if method == "GET" and "{" not in path]
    return [path for path in found if path != OFFERED and not is_stream(path)]


async def make_everything(control: ControlPlane) -> dict[str, str]:
    """Give an advertiser and a publisher one entity of each kind, and return the ids."""
    advertiser_id, publisher_id = SystemIds().make(), SystemIds().make()
    async with control.acting_as(Role.PUBLISHER, publisher_id) as publisher:
        site = await publisher.make_site()
        placement = await publisher.make_placement(siteId=site["id"])
        page = await publisher.post(
            f"/admin/sites/{site['id']}/pages",
            json={
                "url": f"https://{site['domain']}/",
                "categories": [{"id": "483", "confidence": 1}],
            },
        )
    crawl_id = await control.app.state.pool.fetchval(
        """
        INSERT INTO site_crawls (public_id, site_id, state, created_at)
        SELECT gen_random_uuid(), id, 'queued', now() FROM sites RETURNING public_id
        """
    )
    async with control.acting_as(Role.ADVERTISER, advertiser_id) as advertiser:
        banner, campaign = await advertiser.make_banner(), await advertiser.make_campaign()
        rule = await advertiser.make_rule(campaign)
        cap = await advertiser.make_cap(banner)
        await advertiser.link(campaign, placement)
        await advertiser.assign(campaign, placement, banner)
        await advertiser.made(f"/admin/campaigns/{campaign['id']}/creatives", {"bannerId": banner["id"]})
        asset = (await advertiser.post("/admin/assets", content=SVG)).json()
    auction = an_auction(
        SystemIds().make(),
        bids=a_bid(banner=BannerId(UUID(banner["id"])), campaign=CampaignId(UUID(campaign["id"]))),
    )
    await apply_auctions(control.app.state.pool, auction)
    async with control.acting_as(Role.ADMIN) as admin:
        key = await admin.made("/admin/api-keys", {"name": "shop", "role": "viewer"})
        person = await admin.made(
            "/admin/accounts", {"email": "ann@example.com", "password": "a good password", "role": "viewer"}
        )
        await admin.make_reference("brand", id=7)
        caller = Caller(subject=person["id"], role=Role.VIEWER)
        signed = issue_access_token(SECRET, caller, now=control.clock.now(), lifetime=timedelta(hours=1))
        async with control.client(Authorization=f"Bearer {signed}") as ann:
            report = await ann.made("/admin/saved-reports", {"name": "Mine"})
        token = (await admin.get("/admin/access-tokens")).json()["items"][0]
    return {
        "advertiser_id": str(advertiser_id),
        "publisher_id": str(publisher_id),
        "site_id": site["id"],
        "domain": site["domain"],
        "page_id": page.json()["id"],
        "crawl_id": str(crawl_id),
        "rule_id": rule["id"],
        "cap_id": cap["id"],
        "auction_id": str(auction.auction_id),
        "kind": "brand",
        "reference_id": "7",
        "placement_id": placement["id"],
        "banner_id": banner["id"],
        "asset_id": asset["id"],
        "campaign_id": campaign["id"],
        "key_id": key["id"],
        "person_id": person["id"],
        "token_id": token["id"],
        "report_id": report["id"],
        "letter_id": "1794720000000-0",
        "queue_name": "banners",
        "job_id": "banner-sync-2026-11-15T1200",
        "user_id": str(SystemIds().make()),
    }


async def rows_of(pool: Pool) -> dict[str, list[str]]:
    return {
        table: sorted(str(dict(row)) for row in await pool.fetch(f"SELECT * FROM {table}"))  # noqa: S608 - our own
        for table in TABLES
    }


def filled(text: str, ids: dict[str, str]) -> str:
    return PARAMETER.sub(lambda found: ids[found[1]], text)


async def attempt(client: Client, method: str, path: str, ids: dict[str, str]) -> int:
    body = {
        name: filled(value, ids) if isinstance(value, str) else value
        for name, value in STOLEN.get(path, {}).items()
    }
    has_body = method in {"POST", "PATCH", "PUT"}
    answer = await client.request(method, filled(path, ids), json=body if has_body else None)
    return answer.status_code


@pytest.mark.parametrize("role", [Role.ADVERTISER, Role.PUBLISHER])
async def test_another_account_reads_and_changes_nothing(
    role: Role, control: ControlPlane, pool: Pool
) -> None:
    ids = await make_everything(control)

    async with control.acting_as(role) as intruder:
        await intruder.get("/admin/banners")  # The first request of an account creates it.
        before = await rows_of(pool)
        statuses = {
            (method, path): await attempt(intruder, method, path, ids) for method, path in on_one_thing()
        }

    assert {key: status for key, status in statuses.items() if status not in {403, 404}} == {}
    assert await rows_of(pool) == before


async def test_a_viewer_changes_nothing(control: ControlPlane, pool: Pool) -> None:
    ids = await make_everything(control)
    before = await rows_of(pool)

    async with control.acting_as(Role.VIEWER) as viewer:
        statuses = {
            (method, path): await attempt(viewer, method, path, ids)
            for method, path in operations()
            if method != "GET"
        }

    assert statuses.pop(PREVIEW_LINK) == 200
    assert set(statuses.values()) == {403}
    assert await rows_of(pool) == before


@pytest.mark.parametrize("role", [Role.ADVERTISER, Role.PUBLISHER])
async def test_a_list_shows_nothing_of_another_account(role: Role, control: ControlPlane, pool: Pool) -> None:
    ids = await make_everything(control)
    await pool.execute(
        """
        INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id, impressions)
        SELECT '2026-11-15T11:00:00Z', banners.id, placements.id, campaigns.id, 471_147_114
          FROM banners, placements, campaigns
        """
    )
    banner, placement, campaign = ({"id": ids[f"{noun}_id"]} for noun in ("banner", "placement", "campaign"))
    await EventRows(pool, banner, placement, campaign).click(Mark.CRAWLER, correlation_id="471147114")
    named = [one for name, one in ids.items() if name not in {"kind", "reference_id", "queue_name"}]

    async with control.acting_as(role) as intruder:
        for path in lists():
            names = {one["name"] for one in paths()[path]["get"].get("parameters", ())}
            query = {"from": "2026-11-15", "to": "2026-11-15"} if {"from", "to"} <= names else {}
            query |= {"groupBy": "banner"} if "groupBy" in names else {}
            query = {"groupBy": "campaign"} if path.endswith("/breakdown") else query
            query = {"campaignId": ids["campaign_id"]} if path == "/admin/stats/campaigns" else query
            answer = await intruder.get(path, params=query)

            assert answer.status_code in {200, 403}, f"{path}: {answer.text}"
            assert not any(one in answer.text for one in [*named, "471147114"]), f"{path}: {answer.text}"


async def test_no_route_can_be_read_without_a_token(control: ControlPlane) -> None:
    ids: dict[str, str] = {
        name: str(SystemIds().make()) for _, path in operations() for name in PARAMETER.findall(path)
    }

    async with control.client() as anonymous:
        statuses = {
            (method, path): (await anonymous.request(method, filled(path, ids), content="{")).status_code
            for method, path in operations()
        }

    assert {key: status for key, status in statuses.items() if status != 401} == {}


@pytest.mark.parametrize(
    ("role", "path", "field"),
    [
        (Role.ADVERTISER, "/admin/banners", "advertiserId"),
        (Role.ADVERTISER, "/admin/campaigns", "advertiserId"),
        (Role.PUBLISHER, "/admin/placements", "publisherId"),
        (Role.PUBLISHER, "/admin/sites", "publisherId"),
    ],
)
async def test_an_entity_belongs_to_the_account_that_created_it(
    role: Role, path: str, field: str, control: ControlPlane
) -> None:
    account_id = SystemIds().make()
    async with control.acting_as(role, account_id) as client:
        makers = {
            "/admin/banners": client.make_banner,
            "/admin/campaigns": client.make_campaign,
            "/admin/placements": client.make_placement,
            "/admin/sites": client.make_site,
        }

        unnamed, named = await makers[path](), await makers[path](**{field: str(account_id)})

    assert unnamed[field] == named[field] == str(account_id)


async def test_an_admin_makes_things_for_an_account(control: ControlPlane, admin: Client) -> None:
    account_id = SystemIds().make()
    async with control.acting_as(Role.ADVERTISER, account_id) as advertiser:
        await advertiser.get("/admin/campaigns")

        made = await admin.make_campaign(advertiserId=str(account_id))

        assert (await advertiser.get(f"/admin/campaigns/{made['id']}")).json() == made


@pytest.mark.parametrize("path", sorted({path for _, path in SHARED}))
@pytest.mark.parametrize("role", Role)
async def test_entities_without_an_owner_can_be_read_by_all_accounts(
    role: Role, path: str, control: ControlPlane
) -> None:
    ids = await make_everything(control)

    async with control.acting_as(role) as client:
        answer = await client.get(filled(path, ids))

    assert answer.status_code == 200
    assert answer.json()["totalCount"] == 1


@pytest.mark.parametrize(("role", "noun"), [(Role.ADVERTISER, "advertisers"), (Role.PUBLISHER, "publishers")])
async def test_an_account_can_read_but_not_change_itself(
    role: Role, noun: str, control: ControlPlane, pool: Pool
) -> None:
    account_id = SystemIds().make()
    ids = {"advertiser_id": str(account_id), "publisher_id": str(account_id)}
    own = [(method, path) for method, path in on_one_thing() if path.startswith(f"/admin/{noun}/")]

    async with control.acting_as(role, account_id) as client:
        listed = (await client.get(f"/admin/{noun}")).json()
        before = await rows_of(pool)
        statuses = {(method, path): await attempt(client, method, path, ids) for method, path in own}

    assert [one["id"] for one in listed["items"]] == [str(account_id)]
    assert {status for (method, _), status in statuses.items() if method == "GET"} == {200}
    assert {status for (method, _), status in statuses.items() if method != "GET"} == {403}
    assert await rows_of(pool) == before


@pytest.mark.parametrize(("role", "noun"), [(Role.ADVERTISER, "advertisers"), (Role.PUBLISHER, "publishers")])
async def test_the_tokens_of_a_deleted_account_are_refused_until_it_is_restored(
    role: Role, noun: str, control: ControlPlane, admin: Client
) -> None:
    account = await admin.made(f"/admin/{noun}", {"name": "Account"})
    path = f"/admin/{noun}/{account['id']}"

    async with control.acting_as(role, UUID(account["id"])) as client:
        assert (await client.get(path)).json() == account
        assert (await admin.delete(path)).status_code == 204
        refused = await client.get(path)
        assert (await admin.post(f"{path}/restore")).status_code == 200
        assert (await client.get(path)).status_code == 200

    problem(refused, 401, "UNAUTHENTICATED")
