"""A document is imported as a whole or not at all, by the API's own rules."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from adloom.resource.changes import CURRENT_VERSION, NOTICE_CHANNEL
from adloom.resource.transfer import api as transfer_api
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.support.builders import NOON, UNKNOWN_ID, Json
from tests.support.control import Client, ControlPlane, problem
from tests.support.documents import BANNER, PLACEMENT, Importer, a_document
from tests.support.eventually import becomes, eventually
from tests.support.for_each import for_each
from tests.support.pages import insert_approval


async def counted(pool: Pool) -> int:
    return await pool.fetchval("SELECT count(*) FROM audit_entries")


async def test_items_of_a_document_refer_to_each_other_by_key(importer: Importer) -> None:
    report = await importer.imported(a_document())

    exported = await importer.exported()
    campaign, placement, banner = (exported[name][0]["id"] for name in ("campaigns", "placements", "banners"))
    assert report["created"] == 6
    assert exported["campaigns"][0]["status"] == "active"
    decided = {"state": "accepted", "reason": None, "isAskedFor": False}
    assert exported["links"] == [
        {"campaignId": campaign, "placementId": placement, "isActive": True, **decided}
    ]
    assert (exported["assignments"][0]["bannerId"], exported["assignments"][0]["weight"]) == (banner, 5)
    assert exported["targetingRules"][0]["value"] == ["IN"]
    assert {change["key"]: change["id"] for change in report["changes"] if change["key"]} == {
        "p": placement,
        "b": banner,
        "c": campaign,
    }


async def test_an_import_is_one_version_one_notice_and_in_the_audit_trail(
    importer: Importer, pool: Pool, valkey: Valkey
) -> None:
    async with valkey.pubsub() as listener:
        await listener.subscribe(NOTICE_CHANNEL)
        await listener.get_message(timeout=30)

        await importer.imported(a_document())

        received: list[bool] = []
        for seconds in (30, 0.2):
            notice = await listener.get_message(ignore_subscribe_messages=True, timeout=seconds)  # pyright: ignore[reportUnknownVariableType] - redis-py leaves it open
            received.append(notice is not None)
    assert received == [True, False]
    assert await pool.fetchval("SELECT version FROM catalog_version") == 1
    entries = (await importer.client.get("/admin/audit")).json()["items"]
    assert sorted((entry["noun"], entry["action"]) for entry in entries) == [
        ("assignment", "create"),
        ("banner", "create"),
        ("campaign", "create"),
        ("link", "create"),
        ("placement", "create"),
        ("targeting_rule", "create"),
    ]
    assert len({entry["requestId"] for entry in entries}) == 1


async def test_an_imported_item_equals_one_made_over_the_api(importer: Importer, pool: Pool) -> None:
    fields = {**BANNER, "publishAt": "2026-12-01T00:00:00Z", "tags": ["a"]}
    made = await importer.client.make_banner(**fields)

    await importer.imported({"banners": [fields]})

    rows = await pool.fetch("SELECT * FROM banners ORDER BY id")
    unlike = {"id", "public_id"}
    first, second = ({name: row[name] for name in row if name not in unlike} for row in map(dict, rows))
    assert first == second
    assert made["scheduleStatus"] == second["schedule_status"] == "scheduled"


async def test_missing_fields_keep_their_value_and_null_clears_it(importer: Importer) -> None:
    banner = await importer.client.make_banner(headline="Old", description="Kept")

    report = await importer.imported({"banners": [{"id": banner["id"], "headline": None, "priority": 3}]})

    after = (await importer.client.get(f"/admin/banners/{banner['id']}")).json()
    assert (after["headline"], after["description"], after["priority"]) == (None, "Kept", 3)
    assert after["updatedAt"] == "2026-11-15T12:00:00.000001Z"
    assert report["changes"] == [
        {
            "path": "banners[0]",
            "kind": "banner",
            "action": "update",
            "key": None,
            "id": banner["id"],
            "changes": {"headline": {"from": "Old", "to": None}, "priority": {"from": 0, "to": 3}},
        }
    ]


async def test_changes_have_the_names_and_values_of_the_api(importer: Importer) -> None:
    campaign = await importer.client.make_campaign(bidAmount=2.5)
    site = await importer.client.make_site(floorCpm=1)

    report = await importer.imported(
        {
            "campaigns": [{"id": campaign["id"], "bidAmount": 3}],
            "sites": [{"id": site["id"], "floorCpm": 0.75}],
        }
    )

    assert [one["changes"] for one in report["changes"]] == [
        {"floorCpm": {"from": 1.0, "to": 0.75}},
        {"bidAmount": {"from": 2.5, "to": 3.0}},
    ]


async def test_a_dry_run_reports_changes_and_makes_none(importer: Importer, pool: Pool) -> None:
    banner = await importer.client.make_banner(title="Old")
    before = await importer.exported()
    document = a_document(banners=[{"key": "b", "id": banner["id"], "title": "New"}])

    tried = await importer.imported(document, dryRun="true")

    assert await importer.exported() == before
    assert (await counted(pool), await pool.fetchval("SELECT version FROM catalog_version")) == (1, 1)
    assert (tried["dryRun"], tried["created"], tried["updated"]) == (True, 5, 1)
    done = await importer.imported(document)
    assert done["counts"] == tried["counts"]
    assert [one["path"] for one in done["changes"]] == [one["path"] for one in tried["changes"]]
    assert all(one["id"] is None for one in tried["changes"] if one["action"] == "create")


async def test_every_problem_is_reported_by_its_path_and_nothing_is_written(
    importer: Importer, pool: Pool
) -> None:
    document = a_document(
        placements=[
            {"key": "p", **PLACEMENT},
            {**PLACEMENT, "slug": "No Slug", "maxBanners": 0},
            {**PLACEMENT},
            7,
        ],
        banners=[
            {"key": "b", **BANNER},
            {"title": "", "mediaVariants": {"x": "ftp://no"}},
            {**BANNER, "brandId": 1},
        ],
        campaigns=[
            {"key": "c", "name": "A"},
            {"name": "B", "startsAt": "2026-02-01T00:00:00Z", "endsAt": "2026-01-01T00:00:00Z"},
            {"name": "C", "status": "scheduled"},
            {"name": "D", "status": "gone"},
            {"name": "E", "colour": "red"},
        ],
        assignments=[
            {"campaignId": "c", "placementId": "p", "bannerId": "unknown"},
            {"campaignId": "c", "bannerId": "b"},
        ],
        targetingRules=[
            {"campaignId": "c", "ruleType": "country", "operator": "between", "value": ["IN"]},
            {"campaignId": "c", "ruleType": "login_state", "operator": "is", "value": "yes"},
        ],
    )

    problems = await importer.problems(document)

    assert set(problems) == {
        "placements[1].slug",
        "placements[1].maxBanners",
        "placements[2].slug",
        "placements[3]",
        "banners[1].title",
        "banners[1].primaryImageUrl",
        "banners[1].mediaVariants.x",
        "banners[2].brandId",
        "campaigns[1].endsAt",
        "campaigns[2].startsAt",
        "campaigns[3].status",
        "campaigns[4].colour",
        "assignments[0].bannerId",
        "assignments[1].placementId",
        *(field for field in problems if field.startswith("targetingRules[")),
    }
    assert {field.partition(".")[0] for field in problems if field.startswith("targetingRules[")} == {
        "targetingRules[0]",
        "targetingRules[1]",
    }
    assert await counted(pool) == 0


async def test_items_that_refer_to_a_wrong_item_are_not_reported(importer: Importer) -> None:
    problems = await importer.problems(a_document(campaigns=[{"key": "c", "name": ""}]))

    assert set(problems) == {"campaigns[0].name"}


@for_each(
    ("lists", "field"),
    [
        ({"banners": [{"key": "b", **BANNER}, {"key": "b", **BANNER}]}, "banners[1].key"),
        ({"banners": [{"id": str(UNKNOWN_ID), **BANNER}] * 2, "assignments": []}, "banners[1]"),
        ({"links": [{"campaignId": "c", "placementId": "p"}] * 2}, "links[1]"),
        ({"links": []}, "assignments[0].placementId"),
        ({"banners": [{"key": "b", **BANNER, "id": "x"}]}, "banners[0].id"),
        ({"banners": [{"key": 7, **BANNER}], "assignments": []}, "banners[0].key"),
        (
            {"campaigns": [{"key": "c", "name": "A", "advertiserId": str(UNKNOWN_ID)}]},
            "campaigns[0].advertiserId",
        ),
        ({"placements": [{"key": "p", **PLACEMENT, "siteId": "\0"}]}, "placements[0].siteId"),
        ({"brands": [{"label": "No id"}]}, "brands[0].id"),
        ({"campaigns": [{"key": "c", "name": "A", "status": ["active"]}]}, "campaigns[0].status"),
    ],
)
async def test_the_items_of_a_document_must_be_consistent(
    lists: dict[str, Any], field: str, importer: Importer
) -> None:
    assert set(await importer.problems(a_document(**lists))) == {field}


@for_each(
    "body",
    [
        b"",
        b"[]",
        b"7",
        b"{",
        b'{"banners": {}}',
        b'{"things": []}',
        b'{"version": 2}',
        b'{"banners": "\xff"}',
    ],
)
async def test_an_invalid_document_is_refused(body: bytes, importer: Importer) -> None:
    assert await importer.problems(body)


async def test_a_document_of_another_type_is_refused(importer: Importer) -> None:
    assert set(await importer.problems(b"{}", media_type="application/xml")) == {"Content-Type"}


async def test_deleted_entities_are_not_changed(importer: Importer) -> None:
    banner, campaign = await importer.client.make_banner(), await importer.client.make_campaign()
    await importer.client.delete(f"/admin/banners/{banner['id']}")
    await importer.client.delete(f"/admin/campaigns/{campaign['id']}")

    problems = await importer.problems(
        {
            "placements": [{"key": "p", **PLACEMENT}],
            "banners": [{"id": banner["id"], "title": "New"}],
            "links": [{"campaignId": campaign["id"], "placementId": "p"}],
        }
    )

    assert set(problems) == {"banners[0]", "links[0].campaignId"}


async def test_a_campaign_status_changes_only_by_an_allowed_transition(importer: Importer) -> None:
    campaign = await importer.client.make_campaign()
    await importer.client.patch(f"/admin/campaigns/{campaign['id']}/cancel")

    problems = await importer.problems({"campaigns": [{"id": campaign["id"], "status": "active"}]})

    assert "cannot become active" in problems["campaigns[0]"]


async def test_an_owner_cannot_be_changed(importer: Importer) -> None:
    advertiser = await importer.client.made("/admin/advertisers", {"name": "Tea"})
    banner = await importer.client.make_banner(advertiserId=advertiser["id"])

    for owner in (None, str(UNKNOWN_ID)):
        problems = await importer.problems({"banners": [{"id": banner["id"], "advertiserId": owner}]})
        assert set(problems) == {"banners[0].advertiserId"}


async def test_a_stale_item_overwrites_nothing(importer: Importer) -> None:
    banner = await importer.client.make_banner()
    await importer.client.patch(f"/admin/banners/{banner['id']}", json={"title": "Newer"})
    item = {"id": banner["id"], "title": "Mine", "updatedAt": banner["updatedAt"]}

    assert "changed after you read it" in (await importer.problems({"banners": [item]}))["banners[0]"]


async def test_a_placement_is_found_by_its_slug_and_a_site_by_its_domain(importer: Importer) -> None:
    placement = await importer.client.make_placement(slug="hero", label="Old")
    site = await importer.client.made("/admin/sites", {"domain": "news.example.com"})

    report = await importer.imported(
        {
            "sites": [{"domain": "News.Example.com.", "name": "The News"}],
            "placements": [{"slug": "hero", "label": "New", "siteId": "news.example.com"}],
        }
    )

    assert [(one["action"], one["id"]) for one in report["changes"]] == [
        ("update", site["id"]),
        ("update", placement["id"]),
    ]


async def test_an_import_respects_the_limit_of_rules_per_campaign(importer: Importer) -> None:
    rule = {"campaignId": "c", "ruleType": "country", "operator": "in", "value": ["IN"]}

    problems = await importer.problems(a_document(targetingRules=[rule] * 101))

    assert set(problems) == {"targetingRules[100]"}


async def test_frequency_caps_are_made_and_changed_one_for_each_window(importer: Importer) -> None:
    cap = {"adId": "b", "maxImpressionsPerUser": 3}
    await importer.imported(a_document(frequencyCaps=[cap, {**cap, "window": "Week"}]))
    day, week = (await importer.exported())["frequencyCaps"]
    assert (day["window"], week["window"]) == ("Day", "Week")

    report = await importer.imported({"frequencyCaps": [{"id": day["id"], "maxImpressionsPerUser": 5}, week]})
    moved = await importer.imported({"frequencyCaps": [{"id": day["id"], "window": "Hour"}]})
    problems = await importer.problems(
        {
            "frequencyCaps": [
                {"adId": day["adId"], "maxImpressionsPerUser": 1, "window": "Week"},
                {"adId": day["adId"], "maxImpressionsPerUser": 1, "window": "Month"},
                {"adId": day["adId"], "maxImpressionsPerUser": 1, "window": "Month"},
                {"id": week["id"], "adId": str(UNKNOWN_ID)},
                {"id": week["id"], "window": "Hour"},
            ]
        }
    )

    assert (report["updated"], report["unchanged"], moved["updated"]) == (1, 1, 1)
    assert (await importer.exported())["frequencyCaps"] == [
        {**day, "maxImpressionsPerUser": 5, "window": "Hour"},
        week,
    ]
    assert sorted(problems) == [
        "frequencyCaps[0].window",
        "frequencyCaps[2].window",
        "frequencyCaps[3].adId",
        "frequencyCaps[4].window",
    ]


async def test_an_advertiser_imports_caps_of_its_own_banners(tea: Importer, importer: Importer) -> None:
    foreign_cap = await importer.client.make_cap(await importer.client.make_banner())
    cap = {"adId": "b", "maxImpressionsPerUser": 3}

    await tea.imported({"banners": a_document()["banners"], "frequencyCaps": [cap]})
    problems = await tea.problems(
        {
            "frequencyCaps": [
                {**cap, "adId": foreign_cap["adId"]},
                {"id": foreign_cap["id"], "maxImpressionsPerUser": 1},
            ]
        }
    )

    assert sorted(problems) == ["frequencyCaps[0].adId", "frequencyCaps[1].id"]
    assert len((await tea.exported())["frequencyCaps"]) == 1


async def test_an_advertiser_imports_only_its_own_entities(tea: Importer, importer: Importer) -> None:
    foreign, other = await importer.client.make_campaign(), await importer.client.make_campaign()
    hidden = await importer.client.make_placement(slug="hidden", isActive=False)
    await importer.client.make_placement(slug="hero")
    mine = {name: a_document()[name] for name in ("banners", "campaigns", "links")}
    mine |= {"assignments": [{"campaignId": "c", "placementId": "hero", "bannerId": "b"}]}

    await tea.imported(mine)
    problems = await tea.problems(
        {
            "placements": [PLACEMENT],
            "brands": [{"id": 1, "label": "B"}],
            "banners": [
                {"id": str(SystemIds().make()), **BANNER},
                {**BANNER, "advertiserId": str(UNKNOWN_ID)},
            ],
            "campaigns": [{"key": "c", "name": "A"}, {"id": foreign["id"], "name": "Stolen"}],
            "links": [
                {"campaignId": other["id"], "placementId": "hero"},
                {"campaignId": "c", "placementId": hidden["id"]},
                {"campaignId": "c", "placementId": "hidden"},
            ],
        }
    )

    assert set(problems) == {
        "placements[0]",
        "brands[0]",
        "banners[0].id",
        "banners[1].advertiserId",
        "campaigns[1].id",
        "links[0].campaignId",
        "links[1].placementId",
        "links[2].placementId",
    }
    exported = await tea.exported()
    assert {name: len(exported[name]) for name in exported.keys() - {"format", "version"}} == {
        "banners": 1,
        "campaigns": 1,
        "links": 1,
        "assignments": 1,
        "creatives": 0,
        "targetingRules": 0,
        "frequencyCaps": 0,
    }


async def test_foreign_and_unknown_ids_get_the_same_errors(tea: Importer, importer: Importer) -> None:
    campaign, banner = await importer.client.make_campaign(), await importer.client.make_banner()
    advertiser = await importer.client.made("/admin/advertisers", {"name": "Other"})

    def document(campaign_id: str, banner_id: str, advertiser_id: str) -> dict[str, Any]:
        return {
            "banners": [{"id": banner_id}, {**BANNER, "advertiserId": advertiser_id}],
            "targetingRules": [{"campaignId": campaign_id}],
        }

    foreign_problems = await tea.problems(document(campaign["id"], banner["id"], advertiser["id"]))
    unknown = await tea.problems(document(*(str(SystemIds().make()) for _ in range(3))))

    assert foreign_problems == unknown


async def test_a_publisher_imports_its_placements(news: Importer, importer: Importer) -> None:
    await importer.client.make_placement(slug="taken")

    await news.imported(
        {"sites": [{"domain": "a.example.com", "key": "s"}], "placements": [{**PLACEMENT, "siteId": "s"}]}
    )
    problems = await news.problems(
        {"placements": [{**PLACEMENT, "slug": "taken"}], "campaigns": [{"name": "A"}]}
    )

    assert set(problems) == {"placements[0].slug", "campaigns[0]"}
    assert set(await news.exported()) == {"format", "version", "sites", "placements"}


async def test_a_viewer_may_export_and_not_import(control: ControlPlane, admin: Client) -> None:
    await admin.make_banner()
    async with control.acting_as(Role.VIEWER) as viewer:
        problem(await Importer(viewer).sent({}), 403, "FORBIDDEN")
        assert len((await Importer(viewer).exported())["banners"]) == 1


async def test_an_import_that_is_sent_slowly_keeps_nobody_waiting(
    control: ControlPlane, importer: Importer
) -> None:
    is_sent, has_begun = asyncio.Event(), asyncio.Event()

    async def send_slowly() -> AsyncGenerator[bytes]:
        yield b"{"
        has_begun.set()
        await is_sent.wait()
        yield b"}"

    async with control.acting_as(Role.ADVERTISER) as slow, asyncio.TaskGroup() as group:
        headers = {"Content-Type": "application/json"}
        sending = group.create_task(slow.post("/admin/import", content=send_slowly(), headers=headers))
        await has_begun.wait()
        second = await slow.post("/admin/import", json={})
        problem(second, 503, "UNAVAILABLE")
        assert second.headers["retry-after"] == "5"

        await importer.imported({})
        async with control.acting_as(Role.ADVERTISER) as other:
            assert (await other.post("/admin/import", json={})).status_code == 200
        is_sent.set()

    assert sending.result().status_code == 200


@asynccontextmanager
async def written_by_nobody_else(pool: Pool, table: str) -> AsyncGenerator[None]:
    """Block all writes to a table."""
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(f"LOCK TABLE {table} IN SHARE MODE")
        yield


def list_logged(lines: list[Any]) -> list[tuple[str, int]]:
    return [(line["step"], line["done"]) for line in lines if line["event"] == "import_under_way"]


async def test_an_import_says_how_far_it_is(
    control: ControlPlane, importer: Importer, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = {"step": None, "done": 0, "total": 0}
    monkeypatch.setattr(transfer_api, "LOGGED_SECONDS", 0.01)

    async def ask(client: Client) -> Any:
        return (await client.get("/admin/import")).json()

    async def has_written(done: int) -> bool:
        return await ask(importer.client) == {"step": "writing", "done": done, "total": 6}

    assert await ask(importer.client) == none
    with capture_logs() as lines:
        async with asyncio.TaskGroup() as group, written_by_nobody_else(pool, "campaign_targeting_rules"):
            async with written_by_nobody_else(pool, "placements"):
                sending = group.create_task(importer.imported(a_document()))
                await becomes(lambda: has_written(0), seconds=30)
            await becomes(lambda: has_written(5), seconds=30)
            async with control.acting_as(Role.ADVERTISER) as other:
                assert await ask(other) == none
            await eventually(lambda: ("writing", 5) in list_logged(lines), seconds=30)

    assert sending.result()["created"] == 6
    assert await ask(importer.client) == none


async def test_a_few_imports_run_at_once(control: ControlPlane, importer: Importer) -> None:
    await importer.imported({})
    control.app.state.import_turns.running = 4

    problem(await importer.sent({}), 503, "UNAVAILABLE")
    control.app.state.import_turns.running = 0
    await importer.imported({})


async def test_a_document_over_the_size_limit_is_refused(importer: Importer) -> None:
    space = b" " * (64 * 1024 * 1024)

    problem(await importer.sent(b"{}" + space), 413, "BODY_TOO_LARGE")
    await importer.imported(b"{}" + space[: 2 * 1024 * 1024])


async def test_the_number_of_reported_problems_is_limited(importer: Importer) -> None:
    body = problem(await importer.sent({"banners": [{}] * 2_000}), 400, "VALIDATION_FAILED")

    assert len(body["errors"]) == 1_000
    assert "4000 problems" in body["detail"]


async def test_an_item_whose_id_is_null_is_one_without_an_id(importer: Importer) -> None:
    wanted = {"placements": [{"id": None, **PLACEMENT}], "banners": [{"id": None, **BANNER}]}
    report = await importer.imported(wanted)
    assert report["created"] == 2
    assert (await importer.imported({"placements": wanted["placements"]}))["unchanged"] == 1


async def test_an_import_and_a_new_assignment_do_not_wait_for_each_other(
    admin: Client, importer: Importer, pool: Pool
) -> None:
    campaign, placement, banner = (
        await admin.make_campaign(),
        await admin.make_placement(),
        await admin.make_banner(),
    )
    document = {
        "campaigns": [{"id": campaign["id"], "name": "Autumn"}],
        "placements": [{"id": placement["id"], "label": "Hero"}],
        "banners": [{"id": banner["id"], "title": "Tea"}],
    }
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT FROM campaigns FOR UPDATE")
        importing = asyncio.create_task(importer.imported(document))
        await asyncio.wait({importing}, timeout=0.5)
        for table in ("placements", "banners"):
            await connection.execute(f"SELECT FROM {table} FOR SHARE NOWAIT")
    assert (await importing)["updated"] == 3


APPROVE = "UPDATE site_approvals SET state = 'approved'"
TOUCHED = """
    SELECT noun, noun_key FROM catalog_changes WHERE version > $1
    UNION ALL SELECT state, banner_id FROM site_approvals
"""


async def test_an_import_has_the_effects_of_the_same_change_over_the_api(
    admin: Client, importer: Importer, pool: Pool
) -> None:
    advertiser = await admin.make_advertiser(dailyBudgetPaisa=100)
    campaign = await admin.make_campaign(advertiserId=advertiser["id"])
    banner = await admin.make_banner(advertiserId=advertiser["id"])
    site = await admin.make_site()
    await admin.make_placement(siteId=site["id"])
    await insert_approval(pool, site["id"], banner["id"], campaign["id"], at=NOON)
    ids = {"advertisers": advertiser["id"], "banners": banner["id"], "sites": site["id"]}
    cases: list[tuple[str, Json, Json]] = [
        ("advertisers", {"dailyBudgetPaisa": 5000}, {"dailyBudgetPaisa": 4000}),
        ("advertisers", {"timezone": "Europe/Berlin"}, {"timezone": "Asia/Kolkata"}),
        ("advertisers", {"blockedSites": ["a.example.com"]}, {"blockedSites": []}),
        ("sites", {"pacing": {"warmup": True}}, {"pacing": {"warmup": False}}),
        ("banners", {"title": "Green tea"}, {"title": "Black tea"}),
        ("banners", {"priority": 1}, {"priority": 2}),
    ]
    for name, changed, imported in cases:
        await pool.execute(APPROVE)
        begun = await pool.fetchval(CURRENT_VERSION)
        assert (await admin.patch(f"/admin/{name}/{ids[name]}", json=changed)).status_code == 200
        touched = set(await pool.fetch(TOUCHED, begun))
        await pool.execute(APPROVE)
        begun = await pool.fetchval(CURRENT_VERSION)
        await importer.imported({name: [{"id": ids[name], **imported}]})
        assert set(await pool.fetch(TOUCHED, begun)) == touched, (name, imported)
