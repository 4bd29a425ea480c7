"""What a walk through the console of the sample opens: addresses, dialogs, and pages that a role sees differently."""

import contextlib
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import httpx
from playwright.sync_api import Page, expect

from adloom.core.caller import Role
from tests.support.product import Product, wait_until

# The first half attacks code that uses a name as HTML, the second code that puts it between quotes.
HOSTILE = '<img src=x onerror=window.pwned=1>" :x="window.pwned=2'
PWNED = "() => [window.pwned ?? null, document.querySelectorAll('img[src=x]').length]"
# One item of each kind that the sample shows often: its list, the field that names it, and all fields with its names.
ITEMS = {
    "campaign_id": ("/admin/campaigns", "The lantern, by the click", ("name", "description")),
    "banner_id": (
        "/admin/banners",
        "For the last hundred metres",
        ("title", "headline", "primaryImageAlt"),
    ),
    "placement_id": ("/admin/placements", "App, after a story (auctioned)", ("label",)),
    "site_id": ("/admin/sites", "The Hedgerow", ("name",)),
    "advertiser_id": ("/admin/advertisers", "Lumen Lamps", ("name",)),
    "publisher_id": ("/admin/publishers", "The Hedgerow", ("name",)),
}
# What opens each kind of dialog: the roles and names of what is clicked, by the page with {} for ids.
DIALOGS: Mapping[str, Sequence[Sequence[tuple[Any, str]]]] = {
    "/console": [
        [("button", "Your account")],
        [("button", "Your account"), ("menuitem", "Change password")],
        [("button", "Go to a page or a thing (Ctrl-K)")],
    ],
    "/console/account": [[("button", "Set it up")]],
    "/console/advertisers/{}": [[("button", "Delete")]],
    "/console/approvals": [[("button", "Reject")]],
    "/console/banners/{}": [[("button", "Switch off")]],
    "/console/banners/{}?tab=where": [[("button", "On a real page")]],
    "/console/banners/{}?tab=caps": [[("button", "Add a cap")]],
    "/console/budgets/campaigns/{}": [[("button", "Refund")]],
    "/console/campaigns": [
        [("checkbox", "Choose"), ("button", "Pause")],
        [("button", "Change bid")],
        [("button", "Change dates")],
    ],
    "/console/campaigns/{}": [[("button", "More")], [("button", "More"), ("menuitem", "Duplicate")]],
    "/console/campaigns/{}?tab=banners": [
        [("button", "Add a banner")],
        [("button", "Add a placement")],
        [("button", "Change")],
    ],
    "/console/campaigns/{}?tab=targeting": [[("button", "Add a condition")]],
    "/console/reports": [[("button", "Save report")]],
    "/console/reports/ads": [[("button", "Sync now")]],
    "/console/requests?tab=accepted": [[("button", "Preview")], [("button", "Refuse")]],
    "/console/sites/{}?tab=pages": [[("button", "Add a page")]],
    "/console/system?tab=keys": [[("button", "New key")]],
    "/console/system?tab=accounts": [[("button", "New account")], [("button", "Edit")]],
}
MENUS: Sequence[tuple[Any, str]] = [("button", "Your account"), ("button", "More")]
# Pages that an account sees otherwise than an admin.
OF_ROLES = {
    Role.ADVERTISER: (
        "/console",
        "/console/campaigns",
        "/console/campaigns/{campaign_id}",
        "/console/campaigns/new",
        "/console/banners/{banner_id}?tab=where",
        "/console/advertisers",
        "/console/advertisers/{advertiser_id}",
        "/console/budgets",
        "/console/why",
        "/console/reports",
    ),
    Role.PUBLISHER: (
        "/console",
        "/console/placements/{placement_id}",
        "/console/placements/{placement_id}?tab=ads",
        "/console/sites/{site_id}",
        "/console/requests",
        "/console/approvals",
        "/console/publishers",
        "/console/publishers/{publisher_id}",
        "/console/why",
        "/console/reports",
    ),
    Role.VIEWER: ("/console/campaigns/{campaign_id}?tab=settings",),
}
CLOSE_MILLISECONDS_MAX = 30_000
PARAMETER = re.compile(r"\{(\w+)\}")
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


@contextlib.contextmanager
def hostile_names(admin: httpx.Client, *, is_wanted: bool = True) -> Generator[dict[str, str]]:
    """Return the id of an item of each kind, all of which have a hostile name for as long."""
    ids: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        for key, (path, name, fields) in ITEMS.items():
            found = admin.get(path, params={"pageSize": 100}).raise_for_status().json()["items"]
            item = next(one for one in found if one[fields[0]] == name)
            ids[key] = item["id"]
            if is_wanted:
                address = f"{path}/{item['id']}"
                _rename(admin, address, dict.fromkeys(fields, HOSTILE))
                stack.callback(_rename, admin, address, {field: item[field] for field in fields})
        yield ids


def _rename(admin: httpx.Client, address: str, names: Mapping[str, str]) -> None:
    admin.patch(address, json=names).raise_for_status()


def find_auction(admin: httpx.Client, campaign_id: str) -> str:
    """Return an auction, if possible one that a campaign took part in."""
    path = "/api/v1/admin/auctions"

    def find() -> list[dict[str, Any]]:
        own = admin.get(path, params={"campaignId": campaign_id}).raise_for_status().json()["items"]
        return own or admin.get(path).raise_for_status().json()["items"]

    wait_until(lambda: bool(find()), seconds=60, what="an auction")
    return find()[0]["id"]


def give_page(admin: httpx.Client, site_id: str) -> str:
    """Add a page of a site, and return its id."""
    path = f"/admin/sites/{site_id}"
    domain = admin.get(path).raise_for_status().json()["domain"]
    body = {
        "url": f"https://{domain}/given",
        "title": "A page with a long title that has to be cut somewhere on a phone",
        "categories": [{"id": "275", "confidence": 0.9}, {"id": "424", "confidence": 0.2}],
    }
    return admin.post(f"{path}/pages", json=body).raise_for_status().json()["id"]


def write_address(path: str, ids: Mapping[str, str]) -> str:
    return PARAMETER.sub(lambda found: ids[found[1]], path)


def name_page(address: str) -> str:
    """Return an address with {} for ids."""
    return ID.sub("{}", address)


def give_account(product: Product, role: Role, ids: Mapping[str, str], password: str) -> str:
    """Create an account of a role that sees the items, and return its address."""
    email = f"{role.value}@walk.example.com"
    body = {"email": email, "password": password, "role": role.value}
    if f"{role.value}_id" in ids:
        body["accountId"] = ids[f"{role.value}_id"]
    with product.admin() as admin:
        admin.post("/admin/accounts", json=body)
    return email


@contextlib.contextmanager
def open_popup(page: Page, clicks: Sequence[tuple[Any, str]]) -> Generator[str]:
    """Open a dialog, a menu or a list of choices, return its selector, and close it by the keyboard."""
    for role, name in clicks:
        page.get_by_role(role, name=re.compile(rf"^{re.escape(name)}")).first.click()
    selector = ".q-menu" if len(clicks) == 1 and clicks[0] in MENUS else ".q-dialog"
    popup = page.locator(selector)
    popup.first.wait_for()
    yield selector
    page.keyboard.press("Escape")
    expect(popup).to_have_count(0, timeout=CLOSE_MILLISECONDS_MAX)


def _show_errors(page: Page) -> None:
    page.get_by_role("button", name="Create").click()
    page.locator(".q-field--error").first.wait_for()


def _put_back(page: Page) -> None:
    page.get_by_role("link", name="Put it back").first.click()
    page.get_by_text("Old values are filled in").wait_for()


def _try_import(page: Page) -> None:
    text = "kind,slug,label,layoutType,maxBanners\nplacement,of-a-file,Of a file,full_static,2\n"
    file: Any = {"name": "catalog.csv", "mimeType": "text/csv", "buffer": text.encode()}
    page.locator(".al-upload input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).wait_for()


# What a page shows after something was done to it, and how it is done; nothing is written.
STATES: Mapping[str, tuple[str, Callable[[Page], None]]] = {
    "/console/campaigns/new": ("with errors", _show_errors),
    "/console/campaigns/{}?tab=history": ("put back", _put_back),
    "/console/system?tab=transfer": ("a dry run", _try_import),
}
