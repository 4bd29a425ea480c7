"""Verification of sites by a file: over HTTP, and again every week."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from adloom.core.caller import Role
from adloom.core.clock import ManualClock
from adloom.core.ids import SystemIds
from adloom.pages.verification.model import find_mistake
from adloom.pages.verification.verify import RECHECK_SITES, VerificationRecheck
from adloom.resource.changes import Catalog
from adloom.runtime.jobs.worker import JobAttempt
from adloom.runtime.outbound.client import open_outbound
from adloom.runtime.outbound.settings import LocalHost, OutboundSettings
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.support.builders import NOON, Json
from tests.support.control import Client, ControlPlane, control_settings, problem, running_control
from tests.support.website import Website, running_website

PATH = "/.well-known/adloom.txt"


@pytest.fixture
async def website() -> AsyncIterator[Website]:
    async with running_website() as website:
        yield website


def outbound_to(website: Website) -> OutboundSettings:
    place = LocalHost("127.0.0.1", website.port)
    return OutboundSettings(user_agent="x", local_hosts={"paper.test": place, "other.test": place})


@pytest.fixture
async def control(database_url: str, redis_url: str, website: Website) -> AsyncIterator[ControlPlane]:
    settings = control_settings(database_url, redis_url, outbound=outbound_to(website))
    async with running_control(settings) as control:
        yield control


class Recheck:
    """The weekly look, on a clock of its own: tokens of clients would end."""

    def __init__(self, job: VerificationRecheck, clock: ManualClock) -> None:
        self.job = job
        self._clock = clock

    async def look(self, *, after: timedelta) -> None:
        self._clock.advance(after)
        await self.job.handle(JobAttempt(name=RECHECK_SITES, id="1", data={}, attempt=1))


@pytest.fixture
async def recheck(website: Website, pool: Pool, valkey: Valkey) -> AsyncIterator[Recheck]:
    clock = ManualClock(NOON)
    async with open_outbound(outbound_to(website)) as client:
        yield Recheck(VerificationRecheck(Catalog(pool, valkey, clock=clock), client, clock), clock)


@pytest.fixture
async def publisher(control: ControlPlane) -> AsyncIterator[Client]:
    async with control.acting_as(Role.PUBLISHER, SystemIds().make()) as client:
        yield client


@pytest.fixture
async def admin(control: ControlPlane) -> AsyncIterator[Client]:
    async with control.acting_as(Role.ADMIN) as client:
        yield client


@pytest.fixture
async def site(publisher: Client) -> Json:
    return await publisher.make_site(domain="paper.test")


async def verify(client: Client, site: Json, body: Any = None) -> Any:
    path = f"/admin/sites/{site['id']}/verify"
    return await (client.post(path) if body is None else client.post(path, json=body))


async def token_of(client: Client, site: Json) -> str:
    answer = await client.post(f"/admin/sites/{site['id']}/verification")
    assert answer.status_code == 200, answer.text
    assert answer.json()["url"] == f"https://{site['domain']}{PATH}"
    return answer.json()["token"]


async def test_a_site_is_verified_by_its_file(publisher: Client, website: Website, site: Json) -> None:
    token = await token_of(publisher, site)
    website.say(PATH, f"somebody-else\r\n {token} \r\n", "text/plain")

    answer = await verify(publisher, site)

    assert answer.status_code == 200, answer.text
    assert (answer.json()["id"], answer.json()["verifiedHost"]) == (site["id"], "paper.test")
    assert answer.json()["verifiedAt"]
    assert await token_of(publisher, site) == token, "the file stays valid"


async def test_a_site_that_is_not_proven_is_told_why(publisher: Client, website: Website, site: Json) -> None:
    token = await token_of(publisher, site)

    async def reason() -> str:
        return problem(await verify(publisher, site), 409, "SITE_NOT_VERIFIED")["detail"]

    assert "The server answers 404." in await reason()
    website.say(PATH, "")
    assert "The file is empty." in await reason()
    website.say(PATH, f"x{token}")
    assert "does not have the token on a line of its own" in await reason()
    website.redirect(PATH, "https://other.test/elsewhere.txt")
    website.say("/elsewhere.txt", token)
    assert "another host proves nothing" in await reason()
    website.redirect(PATH, "http://127.0.0.1/")
    assert "another host proves nothing" in await reason()
    assert "/elsewhere.txt" not in website.paths
    assert (await publisher.get(f"/admin/sites/{site['id']}")).json()["verifiedAt"] is None


async def test_a_redirect_on_the_same_host_proves_it(publisher: Client, website: Website, site: Json) -> None:
    website.redirect(PATH, "/adloom.txt")
    website.say("/adloom.txt", await token_of(publisher, site))

    assert (await verify(publisher, site)).status_code == 200


async def test_only_an_admin_may_verify_by_word(publisher: Client, admin: Client, site: Json) -> None:
    problem(await verify(publisher, site, {"force": True}), 403, "FORBIDDEN")

    answer = await verify(admin, site, {"force": True})

    assert (answer.status_code, answer.json()["verifiedHost"]) == (200, "paper.test")


async def test_another_domain_has_another_token_and_is_not_verified(
    publisher: Client, admin: Client, site: Json
) -> None:
    token = await token_of(publisher, site)
    await verify(admin, site, {"force": True})

    changed = await publisher.patch(f"/admin/sites/{site['id']}", json={"domain": "other.test"})

    assert changed.json()["verifiedAt"] is None
    assert await token_of(publisher, changed.json()) != token


@pytest.fixture
async def rival(control: ControlPlane) -> AsyncIterator[Client]:
    async with control.acting_as(Role.PUBLISHER, SystemIds().make()) as client:
        yield client


async def test_who_only_claims_a_domain_keeps_it_from_nobody_and_cannot_prove_it(
    publisher: Client, rival: Client, website: Website, site: Json
) -> None:
    """The one who came first does not own the domain."""
    own = await rival.make_site(domain="paper.test")
    assert own["id"] != site["id"]
    website.say(PATH, await token_of(rival, own))

    problem(await verify(publisher, site), 409, "SITE_NOT_VERIFIED")
    assert (await verify(rival, own)).status_code == 200

    assert not await is_verified(publisher, site)
    problem(await verify(publisher, site), 409, "SITE_NOT_VERIFIED")
    assert await is_verified(rival, own)
    again = await rival.post("/admin/sites", json={"domain": "paper.test"})
    problem(again, 409, "SITE_DOMAIN_EXISTS")


async def test_the_domain_of_a_verified_site_cannot_be_claimed(
    publisher: Client, rival: Client, admin: Client, site: Json
) -> None:
    await verify(admin, site, {"force": True})
    other = await rival.make_site(domain="other.test")

    problem(await rival.post("/admin/sites", json={"domain": "Paper.test."}), 409, "SITE_DOMAIN_EXISTS")
    moved = await rival.patch(f"/admin/sites/{other['id']}", json={"domain": "paper.test"})
    problem(moved, 409, "SITE_DOMAIN_EXISTS")
    imported = await rival.post("/admin/import", json={"sites": [{"domain": "paper.test"}]})
    assert imported.status_code == 400, imported.text

    assert await is_verified(publisher, site)


async def test_a_claimed_domain_can_be_imported_by_another_account(
    publisher: Client, rival: Client, site: Json
) -> None:
    imported = await rival.post("/admin/import", json={"sites": [{"domain": "paper.test", "name": "Ours"}]})

    assert imported.status_code == 200, imported.text
    [own] = (await rival.get("/admin/sites")).json()["items"]
    assert (own["domain"], own["name"]) == ("paper.test", "Ours")
    assert (await publisher.get(f"/admin/sites/{site['id']}")).json() == site


async def test_a_site_whose_token_is_gone_gives_way_to_one_that_is_proven(
    publisher: Client, rival: Client, website: Website, site: Json
) -> None:
    other = await rival.make_site(domain="paper.test")
    first, second = await token_of(publisher, site), await token_of(rival, other)
    website.say(PATH, first)
    await verify(publisher, site)

    website.say(PATH, f"{first}\n{second}")
    refused = problem(await verify(rival, other), 409, "SITE_NOT_VERIFIED")
    assert "token of another account" in refused["detail"]
    assert (await is_verified(publisher, site), await is_verified(rival, other)) == (True, False)

    website.say(PATH, second)
    assert (await verify(rival, other)).status_code == 200
    assert (await is_verified(publisher, site), await is_verified(rival, other)) == (False, True)


async def test_an_admins_word_stands_against_a_file_and_can_be_given_to_another(
    publisher: Client, rival: Client, admin: Client, website: Website, site: Json
) -> None:
    other = await rival.make_site(domain="paper.test")
    await verify(admin, site, {"force": True})
    website.say(PATH, await token_of(rival, other))

    assert "ask for it" in problem(await verify(rival, other), 409, "SITE_NOT_VERIFIED")["detail"]
    assert (await verify(admin, other, {"force": True})).status_code == 200

    assert (await is_verified(publisher, site), await is_verified(rival, other)) == (False, True)


async def test_checks_of_a_site_have_a_bound(publisher: Client, site: Json) -> None:
    statuses = [(await verify(publisher, site)).status_code for _ in range(22)]

    assert statuses.count(429) == 2


async def is_verified(client: Client, site: Json) -> bool:
    return (await client.get(f"/admin/sites/{site['id']}")).json()["verifiedAt"] is not None


async def test_a_verification_is_withdrawn_after_three_failures_in_a_row(
    publisher: Client, admin: Client, website: Website, site: Json, recheck: Recheck
) -> None:
    website.say(PATH, await token_of(publisher, site))
    await verify(publisher, site)
    await recheck.look(after=timedelta(days=6))
    assert recheck.job.checked == 0, "it is looked at once a week"
    await recheck.look(after=timedelta(days=2))
    assert recheck.job.checked == 1
    del website.replies[PATH]
    await recheck.look(after=timedelta(days=8))
    await recheck.look(after=timedelta(hours=1))
    assert recheck.job.checked == 2, "a failure is looked at again after a day"
    await recheck.look(after=timedelta(days=2))
    assert await is_verified(publisher, site)

    await recheck.look(after=timedelta(days=2))

    assert not await is_verified(publisher, site)
    for client in (publisher, admin):
        items = (await client.get("/admin/attention")).json()["items"]
        found = [one for one in items if one["kind"] == "verification"]
        assert [(one["noun"], one["id"], one["level"]) for one in found] == [("site", site["id"], "bad")]


async def test_a_site_that_is_verified_again_needs_no_attention(
    publisher: Client, website: Website, site: Json, recheck: Recheck
) -> None:
    website.say(PATH, await token_of(publisher, site))
    await verify(publisher, site)
    answer = website.replies.pop(PATH)
    for _ in range(3):
        await recheck.look(after=timedelta(days=8))
    assert not await is_verified(publisher, site)

    website.replies[PATH] = answer
    assert (await verify(publisher, site)).status_code == 200

    assert (await publisher.get("/admin/attention")).json()["items"] == []


async def test_a_success_forgives_earlier_failures(
    publisher: Client, website: Website, site: Json, recheck: Recheck
) -> None:
    website.say(PATH, await token_of(publisher, site))
    await verify(publisher, site)
    answer = website.replies[PATH]

    for is_there in (False, False, True, False, False):
        website.replies.pop(PATH, None)
        if is_there:
            website.replies[PATH] = answer
        await recheck.look(after=timedelta(days=8))

    assert await is_verified(publisher, site)
    assert (recheck.job.checked, recheck.job.withdrawn) == (5, 0)


async def test_a_site_that_an_admin_has_verified_is_not_looked_at(
    admin: Client, website: Website, site: Json, recheck: Recheck
) -> None:
    await verify(admin, site, {"force": True})

    await recheck.look(after=timedelta(days=30))

    assert website.asked == []


@pytest.mark.parametrize("body", [b"", b"\xff\xfe\x00", b"t" * 100_000, b"token2", b"a token"])
def test_what_does_not_have_the_token_proves_nothing(body: bytes) -> None:
    assert find_mistake(200, body, "token")
    assert find_mistake(500, b"token", "token")
    assert find_mistake(200, b"\xef\xbb\xbftoken", "token") is None


async def check_tag(client: Client, placement: Json, url: str = "https://paper.test/story") -> Json:
    answer = await client.post(f"/admin/placements/{placement['id']}/tag-check", json={"url": url})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_tag_is_looked_for_on_a_page_of_the_site(
    publisher: Client, website: Website, site: Json
) -> None:
    placement = await publisher.make_placement(siteId=site["id"])
    tag = (await publisher.get(f"/admin/placements/{placement['id']}/tag")).json()["html"]
    missing = await check_tag(publisher, placement)
    website.say("/story", "<p>Nothing", "text/html")
    bare = await check_tag(publisher, placement)
    website.say(
        "/story", '<script src="https://cdn.test/tag.js"></script><div data-adloom="other">', "text/html"
    )
    other = await check_tag(publisher, placement)
    website.say("/story", f"<body>{tag}", "text/html")
    complete = await check_tag(publisher, placement)

    website.say("/story", f"{tag}<![x", "text/html")
    odd = await check_tag(publisher, placement)
    website.redirect("/story", "https://elsewhere.test/")
    away = await check_tag(publisher, placement)

    assert odd["isThere"]
    assert "leads away from paper.test" in away["message"]
    assert "404" in missing["message"]
    assert "paste both lines" in bare["message"]
    assert f'data-adloom="{placement["slug"]}"; it has other.' in other["message"]
    assert [one["isThere"] for one in (missing, bare, other, complete)] == [False, False, False, True]
    assert complete["slugs"] == [placement["slug"]]


async def test_the_tag_is_looked_for_nowhere_else(publisher: Client, website: Website, site: Json) -> None:
    placement = await publisher.make_placement(siteId=site["id"])
    homeless = await publisher.make_placement()

    for one, url in (
        (placement, "https://other.test/"),
        (placement, "http://127.0.0.1/"),
        (placement, "file:///etc/passwd"),
        (homeless, "https://paper.test/"),
    ):
        answer = await publisher.post(f"/admin/placements/{one['id']}/tag-check", json={"url": url})
        assert problem(answer, 400, "VALIDATION_FAILED")["errors"][0]["field"] == "url"
    assert website.asked == []
