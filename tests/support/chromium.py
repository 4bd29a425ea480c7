"""A real Chromium: the system's own, driven by Playwright; tests that need it are skipped where there is none.

Playwright's sync API keeps an event loop of its own in the thread that started it. So tests with a
browser are plain functions, and the fixture `chromium` (`tests/browser/conftest.py`) lives for one file.
"""

import contextlib
import json
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

WAIT_SECONDS_MAX = 30.0
# Only this machine answers, whatever a page names: what a browser asks for is not seen by `conftest`.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


class Visit(msgspec.Struct, frozen=True):
    """A page, and what was heard of it so far: what it said in the console, and what it asked for."""

    page: Page
    errors: list[str]
    requests: list[Request]

    def asked(self, part: str) -> list[Request]:
        """Tell the requests whose address has a part."""
        return [request for request in self.requests if part in request.url]

    def told(self, part: str) -> list[dict[str, Any]]:
        """Tell the JSON that was sent to addresses with a part."""
        return [json.loads(request.post_data or "") for request in self.asked(part)]


@contextlib.contextmanager
def a_chromium() -> Generator[Browser]:
    """Start Chromium without a window, and end it; skip where there is none."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no `chromium` on the path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=Path(path), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def a_context(browser: Browser, **options: Any) -> Generator[BrowserContext]:
    """Give a browser profile with nothing in it; options are those of `Browser.new_context`."""
    context = browser.new_context(**options)
    context.set_default_timeout(WAIT_SECONDS_MAX * 1000)
    try:
        yield context
    finally:
        context.close()


@contextlib.contextmanager
def a_visit(browser: Browser, **options: Any) -> Generator[Visit]:
    """Open an empty page in a new profile, and listen to it; options are those of `Browser.new_context`."""
    with a_context(browser, **options) as context:
        yield listening(context.new_page())


def listening(page: Page) -> Visit:
    """Take down what a page says and asks for, from now on."""
    visit = Visit(page, [], [])

    def hear(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            visit.errors.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    page.on("console", hear)
    page.on("pageerror", lambda error: visit.errors.append(f"uncaught: {error}"))
    page.on("request", lambda request: visit.requests.append(request))  # noqa: PLW0108 - a builtin cannot be marked
    return visit


def stand_still(page: Page) -> None:
    """Let time pass on a page's clock only where a test says so, by `page.clock.run_for`."""
    page.clock.install(time="2026-11-15T12:00:00Z")
    page.clock.pause_at("2026-11-15T12:00:01Z")
