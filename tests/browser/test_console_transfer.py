"""The catalog is exported, changed, tried and imported in the console."""

import asyncio
import csv
import io
import threading
from codecs import BOM_UTF8
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest
from playwright.sync_api import BrowserContext, FilePayload, Page, expect

from tests.support.console import log_in_to
from tests.support.product import Product

pytestmark = pytest.mark.browser


def choose(page: Page, text: str) -> None:
    file: FilePayload = {"name": "catalog.csv", "mimeType": "text/csv", "buffer": text.encode()}
    page.locator("input[type=file]").set_input_files(file)


@contextmanager
def written_by_nobody_else(product: Product, table: str) -> Generator[None]:
    """Block all writes to a table."""
    is_locked, may_go_on = threading.Event(), threading.Event()

    async def lock() -> None:
        connection = await asyncpg.connect(product.database_url)
        async with connection.transaction():
            await connection.execute(f"LOCK TABLE {table} IN SHARE MODE")
            is_locked.set()
            await asyncio.to_thread(may_go_on.wait)
        await connection.close()

    with ThreadPoolExecutor(1) as thread:
        locking = thread.submit(asyncio.run, lock())
        assert is_locked.wait(30)
        try:
            yield
        finally:
            may_go_on.set()
            locking.result()


def test_a_catalog_is_downloaded_and_what_a_file_would_change_is_shown_before_it_is_imported(
    product: Product, profile: BrowserContext
) -> None:
    page = profile.new_page()
    log_in_to(product, page)
    page.goto(f"{product.control_url}/console/system?tab=transfer")

    choose(page, "kind,slug,label,layoutType,maxBanners\nplacement,moved-here,Moved here,full_static,no\n")
    row = page.get_by_role("row").filter(has_text="Row 2")
    expect(row).to_contain_text("Slots (maxBanners)")
    expect(page.get_by_role("button", name="Import", exact=True)).to_have_count(0)

    choose(page, "kind,slug,label,layoutType,maxBanners\nplacement,moved-here,Moved here,full_static,2\n")
    expect(page.get_by_role("row").filter(has_text="Placements")).to_contain_text("1")
    with written_by_nobody_else(product, "placements"):
        page.get_by_role("button", name="Import", exact=True).click()
        expect(page.get_by_text("Written: 0 of 1")).to_be_visible()
    expect(page.get_by_text("“catalog.csv” is imported")).to_be_visible()
    expect(page.get_by_text("1 new, 0 changed, 0 as they were.")).to_be_visible()

    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    data = Path(download.value.path()).read_bytes()
    assert data.startswith(BOM_UTF8), "spreadsheets know the characters by it"
    text = data.decode("utf-8-sig")
    [placement] = [one for one in csv.DictReader(io.StringIO(text)) if one["slug"] == "moved-here"]
    assert (placement["kind"], placement["label"], placement["maxBanners"]) == (
        "placement",
        "Moved here",
        "2",
    )

    choose(page, text.replace("Moved here", "Moved again"))
    expect(page.get_by_role("row").filter(has_text="Moved again")).to_contain_text("Moved here")
    choose(page, text)
    expect(page.get_by_text("Nothing would change")).to_be_visible()
    page.close()
