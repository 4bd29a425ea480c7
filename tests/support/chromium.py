"""A real Chromium: the system's own, driven by Playwright; tests that need it are skipped where there is none.

Debian's `chromium-headless-shell` is the same engine without windows: a profile of `chromium` starts a toolbar too,
and takes a second of a processor where one of the shell takes a fifth.

Playwright's sync API keeps an event loop of its own in the thread that started it. So tests with a
browser are plain functions, and the fixture `chromium` (`tests/browser/conftest.py`) ends before tests elsewhere.
"""

import contextlib
import json
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    expect,
    sync_playwright,
)

WAIT_SECONDS_MAX = 30.0
PROGRAMS = ("chromium-headless-shell", "chromium")
# Names below it are of this machine too, but not `localhost`: pages of somebody else.
STRANGER = "stranger.test"
# Only this machine is reachable; `conftest` cannot block the requests of a browser.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    # A page lives for a second: what compiles its code once more, for speed, costs more than it saves. What was compiled
    # once is kept for the next page.
    "--js-flags=--no-opt,--no-maglev",
    "--v8-cache-options=code",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    f"--host-resolver-rules=MAP *.{STRANGER} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


class Visit(msgspec.Struct, frozen=True):
    """A page, its console messages and its requests so far."""

    page: Page
    errors: list[str]
    requests: list[Request]

    def requests_to(self, part: str) -> list[Request]:
        """Return the requests whose address contains a part."""
        return [request for request in self.requests if part in request.url]

    def sent_json(self, part: str) -> list[dict[str, Any]]:
        """Return the JSON bodies of requests whose address contains a part."""
        return [json.loads(request.post_data or "") for request in self.requests_to(part)]


@contextlib.contextmanager
def a_chromium() -> Generator[Browser]:
    """Start Chromium without a window, and end it; skip where there is none."""
    path = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if path is None:
        pytest.skip(f"there is none of {', '.join(PROGRAMS)} on the path")
    with sync_playwright() as playwright:
        expect.set_options(timeout=WAIT_SECONDS_MAX * 1000)  # Five seconds by themselves.
        browser = playwright.chromium.launch(executable_path=Path(path), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def a_context(browser: Browser, **options: Any) -> Generator[BrowserContext]:
    """Return an empty browser profile; options are those of `Browser.new_context`."""
    context = browser.new_context(**options)
    context.set_default_timeout(WAIT_SECONDS_MAX * 1000)
    try:
        yield context
    finally:
        context.close()


@contextlib.contextmanager
def a_visit(browser: Browser, **options: Any) -> Generator[Visit]:
    """Open an empty page in a new profile, and record it; options are those of `Browser.new_context`."""
    with a_context(browser, **options) as context:
        yield listening(context.new_page())


@contextlib.contextmanager
def a_visit_again(context: BrowserContext) -> Generator[Visit]:
    """Open a page in a profile of earlier visits, whose cookies and storage are gone.

    The files of the console stay: a profile without them takes a second and a half of a processor to open a page.
    """
    try:
        yield listening(context.new_page())
    finally:
        forget(context)


def forget(context: BrowserContext) -> None:
    """Close the pages of a profile, and delete their storage and all cookies."""
    for page in context.pages:
        if page.url.startswith("http"):
            page.evaluate("() => { try { localStorage.clear(); } catch { /* a sandboxed page has none */ } }")
        page.close()
    context.clear_cookies()


def listening(page: Page) -> Visit:
    """Record a page's console messages and requests, from now on."""
    visit = Visit(page, [], [])

    def note_error(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            visit.errors.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    page.on("console", note_error)
    page.on("pageerror", lambda error: visit.errors.append(f"uncaught: {error}"))
    page.on("request", lambda request: visit.requests.append(request))  # noqa: PLW0108 - a builtin cannot be marked
    return visit


def stand_still(page: Page) -> None:
    """Let time pass on a page's clock only by `page.clock.run_for`."""
    page.clock.install(time="2026-11-15T12:00:00Z")
    page.clock.pause_at("2026-11-15T12:00:01Z")
