"""A publisher decides in a real browser: it looks at a hostile ad, accepts the campaign, and refuses the banner."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx
import msgspec
import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from adloom.core.caller import Caller, Role
from adloom.core.ids import SystemIds
from adloom.runtime.auth.access_token import issue_access_token
from tests.support.builders import Json, banner_body, campaign_body, placement_body
from tests.support.chromium import a_visit
from tests.support.console import PASSWORD, SECRET, RunningConsole, a_console, log_in
from tests.support.services import Services

pytestmark = pytest.mark.browser

EMAIL = "pat@example.com"
CREATIVE = "https://ads.example.com/creative.html"
# Every way out of a frame that an ad could try: the page around it, its address, a window, a message to click.
HOSTILE = """<!doctype html><script>
  document.title = "ran";
  for (const attack of [
    () => { top.pwned = 1; },
    () => { parent.parent.document.body.remove(); },
    () => { top.location = "https://ads.example.com/taken"; },
    () => { open("https://ads.example.com/popup"); },
    () => { alert("pwned"); },
    () => { fetch("/admin/links", { credentials: "include" }); },
  ]) try { attack(); } catch {}
</script><h1>Bright lamp</h1>"""


class World(msgspec.Struct, frozen=True):
    """A console, and a campaign that asks for a placement of a publisher who can log in."""

    console: RunningConsole
    placement: Json
    campaign: Json
    advertiser: httpx.Client


def _client(console: RunningConsole, role: Role, account_id: UUID) -> httpx.Client:
    caller = Caller(subject="test", role=role, account_id=account_id)
    token = issue_access_token(SECRET, caller, now=datetime.now(UTC), lifetime=timedelta(hours=1))
    return httpx.Client(base_url=console.url, headers={"Authorization": f"Bearer {token}"})


def _made(api: httpx.Client, path: str, body: Json) -> Json:
    return api.post(path, json=body).raise_for_status().json()


@pytest.fixture(scope="module")
def world(services: Services) -> Iterator[World]:
    publisher_id = SystemIds().make()
    with (
        a_console(services) as console,
        console.api() as admin,
        _client(console, Role.PUBLISHER, publisher_id) as publisher,
        _client(console, Role.ADVERTISER, SystemIds().make()) as advertiser,
    ):
        person = {"email": EMAIL, "password": PASSWORD, "role": "publisher", "accountId": str(publisher_id)}
        placement = _made(publisher, "/admin/placements", placement_body(label="Front page"))
        _made(admin, "/admin/accounts", person)
        campaign = _made(advertiser, "/admin/campaigns", campaign_body(name="Lamps of autumn", bidAmount=2))
        hostile = banner_body(title="Bright lamp", mediaVariants={"html": CREATIVE})
        banner = _made(advertiser, "/admin/banners", hostile)
        links = f"/admin/campaigns/{campaign['id']}/placements"
        _made(advertiser, links, {"placementId": placement["id"]})
        _made(advertiser, f"{links}/{placement['id']}/banners", {"bannerId": banner["id"]})
        yield World(console, placement, campaign, advertiser)


def _preview(page: Page, button: str) -> None:
    page.get_by_role("button", name=button).click()
    creative = page.frame_locator("dialog iframe, .q-dialog iframe").frame_locator("iframe")
    expect(creative.get_by_role("heading", name="Bright lamp")).to_be_visible()
    page.get_by_role("button", name="Close").click()


def test_a_publisher_looks_at_a_hostile_ad_accepts_the_campaign_and_refuses_the_banner(
    world: World, chromium: Browser
) -> None:
    with a_visit(chromium) as visit:
        page, dialogs, popups = visit.page, list[str](), list[Page]()
        page.context.route(
            f"{CREATIVE}*", lambda route: route.fulfill(body=HOSTILE, content_type="text/html")
        )

        def dismiss(dialog: Dialog) -> None:
            dialogs.append(dialog.message)
            dialog.dismiss()

        page.on("dialog", dismiss)
        page.on("popup", lambda popup: popups.append(popup))  # noqa: PLW0108 - Playwright sets attributes on it
        log_in(page, world.console.url, email=EMAIL, password=PASSWORD, goal="/console/requests")
        asked = page.get_by_text("Lamps of autumn")
        expect(asked).to_be_visible()
        assert visit.requests_to("ads.example.com") == []

        _preview(page, "Preview (1)")
        assert visit.requests_to("ads.example.com/creative.html")
        page.get_by_role("button", name="Accept").click()
        expect(page.get_by_text("No campaign waits for an answer")).to_be_visible()
        page.goto(f"{world.console.url}/console/placements/{world.placement['id']}?tab=ads")
        page.get_by_role("button", name="Refuse").click()
        page.get_by_label("Why").fill("Too bright for us")
        page.locator(".q-dialog").get_by_role("button", name="Refuse").click()
        expect(page.get_by_text("Too bright for us")).to_be_visible()

        links = f"/admin/campaigns/{world.campaign['id']}/placements"
        [link] = world.advertiser.get(links).json()["items"]
        [shown] = world.advertiser.get(f"{links}/{world.placement['id']}/banners").json()["items"]
        assert (link["state"], shown["isRefused"], shown["reason"]) == ("accepted", True, "Too bright for us")
        assert page.evaluate("window.pwned ?? null") is None
        assert (dialogs, popups) == ([], [])
        assert visit.requests_to("/taken") == visit.requests_to("/popup") == []
