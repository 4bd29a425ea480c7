"""The console in a real browser: log-in, frame, themes, tables, forms and log-out."""

import base64
import re
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from adloom.identity.second_factor.totp import STEP_SECONDS, make_code
from tests.support.chromium import Visit, a_visit, a_visit_again
from tests.support.console import RunningConsole, a_console, log_in
from tests.support.mail_server import MailServer, send_one_mail
from tests.support.oidc_provider import RunningProvider, an_oidc_provider
from tests.support.services import Services

pytestmark = pytest.mark.browser

LATE_MILLISECONDS = 1_300  # More than NiceGUI waits for what it asks a browser.
# Messages of the server arrive late, but for those that open the connection.
LATE_MESSAGES = f"""
    const {{ set }} = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage");
    let seen = 0;
    Object.defineProperty(WebSocket.prototype, "onmessage", {{
      set(handle) {{ set.call(this, (event) => setTimeout(() => handle(event), seen++ < 2 ? 0 : {LATE_MILLISECONDS})); }},
    }});
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[RunningProvider]:
    with an_oidc_provider() as running:
        yield running


@pytest.fixture(scope="module")
def console(
    services: Services, provider: RunningProvider, mail_server: MailServer
) -> Iterator[RunningConsole]:
    with a_console(
        services,
        ADLOOM_SMTP_URL=mail_server.url,
        ADLOOM_SECRET="a-secret-that-seals-things-for-the-tests",
        ADLOOM_OIDC_ISSUER=provider.url,
        ADLOOM_OIDC_CLIENT_ID="adloom",
        ADLOOM_OIDC_CLIENT_SECRET="a secret of the client",
        ADLOOM_OIDC_NAME="Our Company",
        ADLOOM_OIDC_ROLE_CLAIM="groups",
        ADLOOM_OIDC_ROLE_MAP="readers=viewer",
    ) as running:
        yield running


@pytest.fixture
def visit(profile: BrowserContext) -> Iterator[Visit]:
    with a_visit_again(profile) as visit:
        yield visit


@pytest.fixture
def page(visit: Visit, console: RunningConsole) -> Page:
    """A page of an admin who is logged in."""
    console.log_in(visit.page)
    return visit.page


def path_of(page: Page) -> str:
    parts = urlsplit(page.url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def ink_of(page: Page) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_the_right_password_opens_the_requested_page(visit: Visit, console: RunningConsole) -> None:
    visit.page.goto(f"{console.url}/console/system?tab=keys")
    assert path_of(visit.page).startswith("/console/login")

    visit.page.get_by_label("E-mail address").fill(console.email)
    visit.page.get_by_label("Password").fill("a wrong password")
    visit.page.keyboard.press("Enter")
    expect(visit.page.get_by_role("alert")).to_have_text("The e-mail address or the password is wrong.")
    visit.page.get_by_label("Password").fill(console.password)
    visit.page.keyboard.press("Enter")

    expect(visit.page.get_by_role("heading", name="System")).to_be_visible()
    assert path_of(visit.page) == "/console/system?tab=keys"


def test_the_link_of_the_first_start_logs_in_without_a_password(
    visit: Visit, console: RunningConsole
) -> None:
    link = console.welcome_link()

    visit.page.goto(link)
    visit.page.get_by_role("button", name="Open the console").click()
    expect(visit.page.get_by_role("heading", name="Overview")).to_be_visible()

    visit.page.context.clear_cookies()
    visit.page.goto(link)
    visit.page.get_by_role("button", name="Open the console").click()
    expect(visit.page.get_by_role("alert")).to_contain_text("was used before")


def test_the_overview_is_live_logs_no_errors_and_is_reached_by_keyboard(
    visit: Visit, page: Page, console: RunningConsole
) -> None:
    expect(page.locator(".al-tile")).to_have_count(8)
    expect(page.locator(".al-drawn svg").first).to_be_visible()
    # No worker runs beside this control plane, and it logs that at every request.
    expect(page.get_by_text("No worker process runs.")).to_be_visible()

    [unexpected] = [[error for error in visit.errors if "401" not in error]]
    assert unexpected == []
    outside = [request.url for request in visit.requests if not request.url.startswith(console.url)]
    assert [url for url in outside if not url.startswith(("data:", "blob:"))] == []
    check_keyboard(page)


def check_keyboard(page: Page) -> None:
    """Check that Tab reaches everything in the frame."""
    reached: list[str] = []
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "document.activeElement.getAttribute('href') ?? document.activeElement.ariaLabel ?? ''"
            )
        )

    assert {"#content", "/console", "/console/system"} <= set(reached)
    assert {"Switch between light and dark", "Your account"} <= set(reached)


def test_the_theme_is_switched_and_remembered(page: Page) -> None:
    light = ink_of(page)

    page.get_by_label("Switch between light and dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    dark = ink_of(page)
    page.reload()
    page.locator("main #content").wait_for()

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert (ink_of(page), dark != light) == (dark, True)


def test_a_phone_has_the_pages_in_a_drawer(visit: Visit, console: RunningConsole) -> None:
    visit.page.set_viewport_size({"width": 360, "height": 740})
    console.log_in(visit.page)
    navigation = visit.page.get_by_role("navigation", name="Pages")
    expect(navigation).not_to_be_in_viewport()

    visit.page.get_by_label("Open the navigation").click()
    expect(navigation).to_be_in_viewport()
    navigation.get_by_text("System").click()

    expect(visit.page.get_by_role("heading", name="System")).to_be_visible()
    assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_slow_network_is_no_fault(visit: Visit, console: RunningConsole) -> None:
    page = visit.page
    page.set_viewport_size({"width": 1280, "height": 740})
    page.add_init_script(LATE_MESSAGES)
    console.log_in(page, goal="/console/account")
    expect(page.get_by_role("navigation", name="Pages")).to_be_in_viewport()
    page.wait_for_timeout(4 * LATE_MILLISECONDS)

    assert page.get_by_text("Something went wrong").count() == 0


def test_a_key_is_created_shown_once_and_revoked(visit: Visit, console: RunningConsole) -> None:
    page = visit.page
    console.log_in(page, goal="/console/system?tab=keys")
    page.get_by_role("button", name="New key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_text("is required")).to_be_visible()

    dialog.get_by_label("Name").fill("nightly import")
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_text("Here is the key")).to_be_visible()
    key = page.locator(".al-secret .mono").inner_text()
    page.get_by_role("button", name="I have it").click()

    row = page.get_by_role("row").filter(has_text="nightly import")
    expect(row).to_contain_text("in use")
    with console.api() as client:
        assert client.get("/admin/campaigns", headers={"Authorization": f"Bearer {key}"}).status_code == 200
    row.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")


def test_an_account_is_created_and_errors_appear_at_their_field(
    visit: Visit, console: RunningConsole
) -> None:
    page = visit.page
    console.log_in(page, goal="/console/system?tab=accounts")
    page.get_by_role("button", name="New account").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("E-mail address")).to_be_focused()
    page.keyboard.type("bob")
    dialog.get_by_label("Password").fill("a good password")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_text("must be an e-mail address")).to_be_visible()

    dialog.get_by_label("E-mail address").fill("bob@example.com")
    page.keyboard.press("Enter")

    expect(page.get_by_role("row").filter(has_text="bob@example.com")).to_contain_text("active")
    page.get_by_label("Search by e-mail address").fill("nobody")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    expect(page).to_have_url(f"{console.url}/console/system?tab=accounts&search=nobody")
    page.reload()
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    page.get_by_role("button", name="Clear search and filters").click()
    expect(page.get_by_role("row").filter(has_text="bob@example.com")).to_be_visible()


def test_somebody_is_invited_to_act_for_an_advertiser_and_later_removed(
    visit: Visit, console: RunningConsole, chromium: Browser
) -> None:
    page = visit.page
    with console.api() as api:
        for name in ("Birch & Co", "Oak Ltd"):
            assert api.post("/admin/advertisers", json={"name": name}).status_code == 201
    console.log_in(page, goal="/console/system?tab=accounts")
    page.get_by_role("button", name="New account").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("E-mail address").fill("cleo@example.com")
    expect(dialog.get_by_label("Acts for")).to_be_hidden()
    dialog.get_by_label("Role").click()
    page.get_by_role("option", name="Advertiser: its own campaigns").click()
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_text("is required")).to_be_visible()
    dialog.get_by_label("Acts for").fill("bir")
    page.get_by_role("option", name="Birch & Co").click()
    dialog.get_by_role("button", name="Create").click()

    expect(page.get_by_text("An invitation for cleo@example.com")).to_be_visible()
    link = page.locator(".al-secret .mono").inner_text()
    page.get_by_role("button", name="I have it").click()
    row = page.get_by_role("row").filter(has_text="cleo@example.com")
    expect(row).to_contain_text("invited")
    expect(row.get_by_role("link", name="Birch & Co")).to_have_attribute(
        "href", re.compile("/console/advertisers/")
    )

    with a_visit(chromium) as other:
        cleo = other.page
        cleo.goto(link)
        cleo.get_by_label("New password").fill("a password of Cleo")
        cleo.get_by_label("The same again").fill("a password of Cleo")
        cleo.get_by_role("button", name="Set password").click()
        expect(cleo.get_by_text("Your password is set.")).to_be_visible()
        cleo.get_by_label("E-mail address").fill("cleo@example.com")
        cleo.get_by_label("Password").fill("a password of Cleo")
        cleo.keyboard.press("Enter")
        expect(cleo.get_by_role("heading", name="Overview")).to_be_visible()

    row.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Acts for")).to_have_value("Birch & Co")
    dialog.get_by_label("Acts for").fill("oak")
    page.get_by_role("option", name="Oak Ltd").click()
    dialog.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("Oak Ltd")
    row.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)


def test_somebody_sets_up_a_second_factor_and_logs_in_with_it(visit: Visit, console: RunningConsole) -> None:
    page, password = visit.page, "a password of Dora"
    with console.api() as api:
        person = {"email": "dora@example.com", "password": password, "role": "viewer"}
        assert api.post("/admin/accounts", json=person).status_code == 201
    log_in(page, console.url, email="dora@example.com", password=password)
    page.get_by_label("Your account").click()
    page.get_by_text("Second factor").click()
    page.get_by_role("button", name="Set it up").click()
    page.get_by_label("Your password").fill(password)
    page.get_by_role("button", name="Next").click()
    expect(page.locator("svg.al-qr")).to_be_visible()
    secret = base64.b32decode(page.locator(".al-secret .mono").inner_text())
    page.get_by_label("Code").fill(make_code(secret, int(time.time()) // STEP_SECONDS))
    page.get_by_role("button", name="Turn it on").click()
    expect(page.get_by_text("Your second factor is on")).to_be_visible()
    codes = page.locator("pre.al-codes").inner_text().split()
    page.get_by_role("button", name="I have them").click()
    expect(page.get_by_text("10 recovery codes are left.")).to_be_visible()

    page.context.clear_cookies()
    # The code of the next step: that of the last one was used, and a slow machine has time to send it.
    for code in (make_code(secret, int(time.time()) // STEP_SECONDS + 1), codes[0]):
        page.goto(f"{console.url}/console/account")
        page.get_by_label("E-mail address").fill("dora@example.com")
        page.get_by_label("Password").fill(password)
        page.keyboard.press("Enter")
        page.get_by_label("Code").fill(code)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Your account")).to_be_visible()
        page.context.clear_cookies()


def test_a_forgotten_password_is_replaced_by_the_link_in_a_mail(
    visit: Visit, console: RunningConsole, mail_server: MailServer
) -> None:
    page, email, password = visit.page, "fay@example.com", "a new password of Fay"
    with console.api() as api:
        person = {"email": email, "password": "an old password of Fay", "role": "viewer"}
        assert api.post("/admin/accounts", json=person).status_code == 201
    page.goto(f"{console.url}/console/login")

    page.get_by_role("link", name="Forgot your password?").click()
    expect(page.get_by_label("E-mail address")).to_be_focused()
    page.keyboard.type(email)
    page.keyboard.press("Enter")
    expect(page.get_by_text("we send it a link for a new password")).to_be_visible()
    console.in_database(
        lambda pool: send_one_mail(pool, console.redis_url, mail_server, public_url=console.url)
    )
    [message] = mail_server.mails
    [link] = re.findall(rf"{console.url}/console/password\?token=\S+", message.get_content())
    page.goto(link)
    expect(page.get_by_label("New password")).to_be_focused()
    page.keyboard.type(password)
    page.get_by_label("The same again").fill(password)
    page.keyboard.press("Enter")

    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(password)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_somebody_logs_in_by_single_sign_on(
    visit: Visit, console: RunningConsole, provider: RunningProvider
) -> None:
    provider.knows("emil", email="emil@example.com", email_verified=True, groups=["readers"])
    page = visit.page

    page.goto(f"{console.url}/console/reports")
    page.get_by_role("link", name="Log in with Our Company").click()
    page.get_by_placeholder("sub").fill("emil")
    page.get_by_role("button", name="Authorize").click()

    expect(page.get_by_role("heading", name="Reports")).to_be_visible()
    assert path_of(page) == "/console/reports"


def test_a_log_out_ends_other_open_pages_too(page: Page, console: RunningConsole) -> None:
    other = page.context.new_page()
    other.goto(f"{console.url}/console")
    expect(other.get_by_role("heading", name="Overview")).to_be_visible()

    page.get_by_label("Your account").click()
    page.get_by_text("Log out").click()

    expect(page.get_by_text("You are logged out.")).to_be_visible()
    # The other page requests figures every two seconds, and is logged out then.
    expect(other.get_by_text("You are logged out.")).to_be_visible(timeout=30_000)


def test_the_api_docs_work_under_their_policy_and_load_nothing_from_elsewhere(
    visit: Visit, console: RunningConsole
) -> None:
    visit.page.goto(f"{console.url}/docs")

    expect(visit.page.get_by_role("heading", name="Adloom")).to_be_visible(timeout=30_000)
    expect(visit.page.get_by_text("/admin/banners", exact=True)).to_have_count(0)
    visit.page.locator(".opblock-tag[data-tag='banners']").click()
    expect(visit.page.get_by_text("/admin/banners", exact=True).first).to_be_visible(timeout=30_000)
    assert visit.errors == []
    assert {urlsplit(one.url).netloc for one in visit.requests if not one.url.startswith("data:")} == {
        urlsplit(console.url).netloc
    }


def test_pictures_of_advertisers_are_loaded_when_somebody_asks_for_them(
    page: Page, console: RunningConsole
) -> None:
    with console.api() as api:
        picture = "https://pictures.example/one.png"
        body = {"title": "A picture", "primaryImageUrl": picture, "ctaUrl": "https://example.com"}
        assert api.post("/admin/banners", json=body).status_code == 201
    asked: list[str] = []
    page.route("https://pictures.example/**", lambda route: (asked.append(route.request.url), route.abort()))

    page.goto(f"{console.url}/console/banners")
    button = page.get_by_role("button", name="Load the picture").first
    expect(button).to_be_visible()
    assert asked == []

    button.click()
    # One that cannot be loaded is a plain placeholder, in the guided campaign too.
    in_list = page.locator(f'img.al-thumb[data-missing="{picture}"]')
    expect(in_list).to_have_attribute("src", re.compile("^data:image/svg"))
    assert asked == [picture]
    page.goto(f"{console.url}/console/first-campaign")
    page.get_by_label("On a new placement").click()
    page.get_by_label("What do you call the place?").fill("Anywhere")
    page.get_by_role("button", name="Next").click()
    in_guide = page.locator(f'.al-pictures img[data-missing="{picture}"]')
    expect(in_guide).to_have_attribute("src", re.compile("^data:image/svg"))
    assert in_guide.evaluate("one => one.naturalWidth") > 0
