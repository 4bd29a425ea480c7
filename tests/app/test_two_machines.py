"""Control, delivery and worker twice, as on two machines: what one knows holds on the other, and one may fail."""

import asyncio
import contextlib
import json
import time
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import httpx
import pytest

from adloom.identity.parts import MAILS_AT_ONCE_MAX
from tests.support.admin_api import create, create_ad, create_banner, create_placement
from tests.support.databases import Databases
from tests.support.days import these_days, zone_at_noon
from tests.support.machines import EMAIL, PASSWORD, Machine, Machines, running_machines
from tests.support.mail_server import MailServer
from tests.support.product import an_open_folder, wait_until
from tests.support.services import running_valkey

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

SECONDS_MAX = 60.0
EVENTS = 30
CPM = 500
PRICE_MICROS = 500_000
TOPIC = "240"
GUESSES_MAX = 18
REQUESTS_MAX = 120
LIMITED = {"ADLOOM_TRUSTED_PROXIES": "127.0.0.1", "RATE_LIMIT_PERMITS_PER_MINUTE": str(REQUESTS_MAX)}
CHARGES = """
    SELECT count(*) AS charges, count(DISTINCT (request_id, slot)) AS offers, sum(amount_micros)::bigint AS micros
      FROM money_entries WHERE campaign_id = $1 AND kind = 'charge'
"""
FORM = {"email": EMAIL, "password": PASSWORD}


@pytest.fixture(scope="module")
def database(databases: Databases) -> Iterator[str]:
    with databases.lend() as url:
        yield url


@pytest.fixture(scope="module")
def machines(database: str, mail_server: MailServer) -> Iterator[Machines]:
    with (
        an_open_folder() as folder,
        running_valkey() as valkey,
        running_machines(
            folder, database, valkey.url, delivery=LIMITED, ADLOOM_SMTP_URL=mail_server.url
        ) as machines,
    ):
        yield machines


@pytest.fixture(scope="module")
def admins(machines: Machines) -> Iterator[list[httpx.Client]]:
    """An admin who has logged in on machine A, with a client of each."""
    tokens = httpx.post(f"{machines.a.control}/auth/login", json=FORM, timeout=SECONDS_MAX).json()
    headers = {"Authorization": f"Bearer {tokens['accessToken']}"}
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(httpx.Client(base_url=one.control, headers=headers, timeout=SECONDS_MAX))
            for one in machines
        ]


@pytest.fixture(scope="module")
def page() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=SECONDS_MAX, headers={"Connection": "close"}) as client:
        yield client


def test_a_log_in_on_one_control_holds_on_the_other_and_ends_on_both(machines: Machines) -> None:
    a, b = machines.a.control, machines.b.control
    with httpx.Client(timeout=SECONDS_MAX) as browser:

        def read(url: str, tokens: dict[str, str]) -> int:
            headers = {"Authorization": f"Bearer {tokens['accessToken']}"}
            return browser.get(f"{url}/admin/campaigns", headers=headers).status_code

        tokens = browser.post(f"{a}/auth/login", json=FORM).json()
        assert read(b, tokens) == 200
        newer = browser.post(f"{b}/auth/refresh", json={"refreshToken": tokens["refreshToken"]}).json()
        assert (read(a, newer), read(b, newer)) == (200, 200)
        body = {"refreshToken": newer["refreshToken"]}
        assert browser.post(f"{a}/auth/logout", json=body).status_code == 204
        assert (read(a, newer), read(b, newer)) == (401, 401)
        assert browser.post(f"{b}/auth/refresh", json=body).status_code == 401

        assert browser.post(f"{a}/console/login", data=FORM).status_code == 303
        assert [browser.get(f"{url}/console").status_code for url in (a, b)] == [200, 200]
        cookies = dict(browser.cookies)
        assert browser.post(f"{b}/console/logout").status_code == 303
        browser.cookies.update(cookies)
        assert [browser.get(f"{url}/console").status_code for url in (a, b)] == [303, 303]


def test_failed_log_ins_at_one_control_count_at_the_other(machines: Machines) -> None:
    wrong = {"email": "guessed@example.com", "password": "a wrong password"}
    with httpx.Client(timeout=SECONDS_MAX) as guesser:
        statuses = [
            guesser.post(f"{machine.control}/auth/login", json=wrong).status_code
            for machine in [*machines] * (GUESSES_MAX // 2)
        ]

    # Each of them alone would take ten. One is back every half minute.
    assert set(statuses) == {401, 429}
    assert statuses[:10] == [401] * 10


def test_who_listens_at_one_control_hears_what_happens_at_the_other(admins: list[httpx.Client]) -> None:
    a, b = admins
    site = create(a, "/admin/sites", domain="two.test", cronSchedule=None)["id"]
    heard: list[str] = []
    asked: list[int] = []
    with b.stream("GET", f"/admin/sites/{site}/events") as answer:
        for line in answer.iter_lines():
            if line.startswith("event: "):
                heard.append(line.removeprefix("event: "))
            if heard == ["listening"]:
                # A job is started once, wherever it is asked for.
                asked = [one.post(f"/admin/sites/{site}/crawl").status_code for one in admins]
                heard.append("asked")
            if heard and heard[-1] == "crawl":
                break

    assert asked == [202, 409]
    assert heard == ["listening", "asked", "crawl"]
    assert [one.get(f"/admin/sites/{site}/crawls").json()["totalCount"] for one in admins] == [1, 1]


def test_a_job_of_two_workers_is_done_once(
    machines: Machines, admins: list[httpx.Client], mail_server: MailServer
) -> None:
    # So many at once are what an address may ask for, at all machines together.
    for number, machine in enumerate([*machines, *machines][:MAILS_AT_ONCE_MAX], 1):
        asked = httpx.post(
            f"{machine.control}/auth/forgot-password", json={"email": EMAIL}, timeout=SECONDS_MAX
        )
        assert asked.status_code == 202
        wait_until(lambda number=number: len(mail_server.mails) >= number, seconds=SECONDS_MAX, what="mailed")

    def is_idle(admin: httpx.Client) -> bool:
        [queue] = [one for one in admin.get("/admin/jobs").json()["items"] if one["name"] == "mail"]
        return not any(queue[state] for state in ("waiting", "active", "delayed", "failed"))

    for admin in admins:
        wait_until(lambda admin=admin: is_idle(admin), seconds=SECONDS_MAX, what="nothing is left to do")
    assert mail_server.recipients == [EMAIL] * MAILS_AT_ONCE_MAX


def serve(page: httpx.Client, machine: Machine, slug: str) -> dict[str, Any] | None:
    """Ask one machine for an ad."""
    answer = page.get(f"{machine.delivery}/banners/serve/{slug}").json()
    return {"requestId": answer["requestId"], **answer["banners"][0]} if answer.get("banners") else None


def wait_until_served(page: httpx.Client, machines: Iterable[Machine], slug: str) -> None:
    for machine in machines:
        wait_until(
            lambda machine=machine: serve(page, machine, slug) is not None,
            seconds=SECONDS_MAX,
            what=f"machine {machine.name} serves {slug}",
        )


def test_both_deliveries_count_the_requests_of_an_address_together(
    machines: Machines, page: httpx.Client
) -> None:
    flood = {"X-Forwarded-For": "203.0.113.77"}
    allowed = dict.fromkeys("ab", 0)
    refused: set[str] = set()

    while refused != {"a", "b"} and max(allowed.values()) < REQUESTS_MAX:
        for machine in machines:
            answer = page.get(f"{machine.delivery}/banners/serve/unknown", headers=flood)
            refused |= {machine.name} if answer.status_code == 429 else set()
            allowed[machine.name] += answer.status_code != 429
        time.sleep(0.05)  # They tell each other once a second.

    assert refused == {"a", "b"}, allowed
    assert sum(allowed.values()) >= REQUESTS_MAX


def create_paid_ad(admin: httpx.Client, slug: str) -> dict[str, str]:
    costs = {"pacingStrategy": "Accelerated", "bidAmount": CPM, "timezone": zone_at_noon()}
    return create_ad(admin, create_placement(admin, slug), slug, **costs)


def report_seen(page: httpx.Client, machine: Machine, offer: dict[str, Any]) -> None:
    """Report an offer as seen, at whichever machine."""
    path = urlsplit(str(offer["impressionUrl"])).path
    assert page.get(f"{machine.delivery}{path}").status_code == 200


def report(page: httpx.Client, machine: Machine, ids: dict[str, str], name: str) -> int:
    body = {"correlationId": name, **ids}
    return page.post(f"{machine.delivery}/banners/events/impression", json=body).status_code


def count_seen(admin: httpx.Client, ids: dict[str, str]) -> int:
    answer = admin.get("/admin/stats/banners", params={**these_days(), "bannerId": ids["bannerId"]})
    return answer.json()["totals"]["impressions"]


def read_charges(database: str, ids: dict[str, str]) -> tuple[int, int, int]:
    """Return the number of charges, of offers with one, and the sum."""

    async def read() -> tuple[int, int, int]:
        connection = await asyncpg.connect(database)
        try:
            found = await connection.fetchrow(CHARGES, UUID(ids["campaignId"]))
        finally:
            await connection.close()
        assert found is not None
        return found["charges"], found["offers"], found["micros"] or 0

    return asyncio.run(read())


def test_an_offer_of_one_delivery_is_reported_at_the_other_and_charged_once(
    machines: Machines, admins: list[httpx.Client], page: httpx.Client, database: str
) -> None:
    a, b = admins
    ids = create_paid_ad(a, "paid")
    wait_until_served(page, machines, "paid")
    spent: list[int] = []
    with b.stream("GET", "/admin/spend/stream") as answer:
        for line in answer.iter_lines():
            if line == "event: listening":
                offer = serve(page, machines.a, "paid")
                assert offer is not None
                for machine in (machines.b, machines.a, machines.b):
                    report_seen(page, machine, offer)
            if line.startswith("data: ") and (update := json.loads(line.removeprefix("data: "))):
                spent.append(update["spentTotalPaisa"])
            if spent and spent[-1]:
                break

    assert spent[-1] * 10_000 == PRICE_MICROS
    wait_until(lambda: count_seen(b, ids) >= 1, seconds=SECONDS_MAX, what="counted")
    # An event that comes later in the log is counted, so all of them were looked at.
    report(page, machines.a, ids, "after-paid")
    wait_until(lambda: count_seen(b, ids) >= 2, seconds=SECONDS_MAX, what="counted")
    assert (count_seen(a, ids), read_charges(database, ids)) == (2, (1, 1, PRICE_MICROS))


def read_health(page: httpx.Client, machine: Machine) -> tuple[int, dict[str, Any]]:
    answer = page.get(f"{machine.delivery}/health/ready")
    return answer.status_code, answer.json()["checks"]


def test_a_delivery_that_is_cut_off_serves_spools_and_says_so(
    machines: Machines, admins: list[httpx.Client], page: httpx.Client
) -> None:
    ids = create_ad(admins[0], create_placement(admins[0], "cut-off"))
    cut_off = machines.b
    wait_until_served(page, machines, "cut-off")
    for server, gate in (("postgres", machines.postgres), ("valkey", machines.valkey)):
        gate.cut()
        wait_until(
            lambda server=server: read_health(page, cut_off)[1][server] == "unavailable",
            seconds=SECONDS_MAX,
            what=f"it says that {server} is away",
        )
        # What it cannot know is served by the other.
        slug = f"cut-off-from-{server}"
        create_ad(admins[1], create_placement(admins[1], slug))
        wait_until_served(page, [machines.a], slug)
        assert serve(page, cut_off, slug) is None
        assert serve(page, cut_off, "cut-off") is not None
        answers = [report(page, cut_off, ids, f"{server}-{number}") for number in range(EVENTS)]
        assert answers == [202] * EVENTS
        status, checks = read_health(page, cut_off)
        assert (status, checks["index"]["status"]) == (200, "ok")
        assert checks["index"]["version"] < read_health(page, machines.a)[1]["index"]["version"]
    wait_until(
        lambda: read_health(page, cut_off)[1]["spool"]["waitingBytes"] > 0,
        seconds=SECONDS_MAX,
        what="spooled",
    )
    assert read_health(page, machines.a)[1]["spool"]["waitingBytes"] == 0

    machines.valkey.mend()
    machines.postgres.mend()

    wait_until_served(page, [cut_off], "cut-off-from-valkey")
    # As a browser that had no answer and reports again, to another machine.
    assert {report(page, machines.a, ids, f"valkey-{number}") for number in range(EVENTS)} == {202}
    wait_until(lambda: count_seen(admins[1], ids) >= 2 * EVENTS, seconds=SECONDS_MAX, what="all counted")
    wait_until(
        lambda: read_health(page, cut_off)[1]["spool"]["waitingBytes"] == 0,
        seconds=SECONDS_MAX,
        what="drained",
    )
    report(page, machines.a, ids, "after-cut-off")
    wait_until(lambda: count_seen(admins[1], ids) > 2 * EVENTS, seconds=SECONDS_MAX, what="counted")
    assert count_seen(admins[0], ids) == 2 * EVENTS + 1
    wait_until(
        lambda: all(read_health(page, cut_off)[1][server] == "ok" for server in ("postgres", "valkey")),
        seconds=SECONDS_MAX,
        what="it says that both are back",
    )


def sell_page(admin: httpx.Client, name: str) -> tuple[str, str]:
    """Make a campaign that wants pages of the topic; return its id and its banner's."""
    terms = {"bidAmount": CPM, "pacingStrategy": "Accelerated", "timezone": zone_at_noon()}
    campaign = create(admin, "/admin/campaigns", name=name, categories=[TOPIC], **terms)["id"]
    banner = create_banner(admin, name)
    create(admin, f"/admin/campaigns/{campaign}/creatives", bannerId=banner)
    assert admin.patch(f"/admin/campaigns/{campaign}/activate").status_code == 200
    return campaign, banner


def wait_until_shown(page: httpx.Client, machines: Iterable[Machine], url: str, banner: str) -> None:
    for machine in machines:
        wait_until(
            lambda machine=machine: read_shown(page, machine, url) == banner,
            seconds=SECONDS_MAX,
            what=f"machine {machine.name} shows the banner",
        )


def read_shown(page: httpx.Client, machine: Machine, url: str) -> str | None:
    """Return the banner that a machine shows on a page."""
    answer = page.get(f"{machine.delivery}/v1/serve", params={"slot": "listed", "url": url})
    return answer.json()["bannerId"] if answer.status_code == 200 else None


def test_shortlists_reach_both_deliveries_and_one_that_is_cut_off_goes_on_with_its_own(
    machines: Machines, admins: list[httpx.Client], page: httpx.Client
) -> None:
    a, b = admins
    site = create(a, "/admin/sites", domain="listed.test", cronSchedule=None, approvalMode="automatic")["id"]
    create_placement(a, "listed", delivery="contextual", siteId=site)
    url = "https://listed.test/"
    given = {"url": url, "categories": [{"id": TOPIC, "confidence": 0.9}]}
    assert a.post(f"/admin/sites/{site}/pages", json=given).status_code == 200
    first, banner = sell_page(a, "first")
    wait_until_shown(page, machines, url, banner)

    _, newer = sell_page(b, "second")
    assert b.patch(f"/admin/campaigns/{first}/pause").status_code == 200
    wait_until_shown(page, machines, url, newer)

    machines.postgres.cut()
    cut_off = machines.b
    wait_until(
        lambda: read_health(page, cut_off)[1]["postgres"] == "unavailable",
        seconds=SECONDS_MAX,
        what="it says that PostgreSQL is away",
    )
    _, newest = sell_page(a, "third")
    # Its campaign goes on, and so do the leases that the machine has of it.
    decision = {"decision": "reject", "bannerIds": [newer]}
    assert a.post(f"/admin/sites/{site}/approvals", json=decision).json() == {"changed": 1}
    wait_until_shown(page, [machines.a], url, newest)
    assert read_shown(page, cut_off, url) == newer

    machines.postgres.mend()
    wait_until_shown(page, machines, url, newest)


def test_a_worker_that_is_killed_is_replaced_by_the_other_and_all_is_counted_once(
    machines: Machines, admins: list[httpx.Client], page: httpx.Client, database: str
) -> None:
    ids = create_paid_ad(admins[0], "counted")
    wait_until_served(page, machines, "counted")
    seen = 0
    for killed in machines:
        offers: list[dict[str, Any]] = []
        while len(offers) < EVENTS:
            offers += [offer for machine in machines if (offer := serve(page, machine, "counted"))]
        for offer in offers[: EVENTS // 2]:
            report_seen(page, machines.a, offer)
        killed.kill("worker")
        for offer in offers:
            report_seen(page, machines.b, offer)
        seen += len(offers)

        wait_until(
            lambda seen=seen: count_seen(admins[0], ids) >= seen and read_charges(database, ids)[0] >= seen,
            seconds=SECONDS_MAX,
            what=f"without worker {killed.name} {seen} are counted and charged",
        )
        assert count_seen(admins[0], ids) == seen
        assert read_charges(database, ids) == (seen, seen, seen * PRICE_MICROS)
        if killed is machines.a:
            # The next one that dies is the one that has just worked alone.
            killed.start("worker")
            killed.wait("worker")
