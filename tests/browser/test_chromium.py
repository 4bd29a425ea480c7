"""The browser that all these tests use."""

import pytest
from playwright.sync_api import Browser
from playwright.sync_api import Error as BrowserError

from tests.support.chromium import a_visit

pytestmark = pytest.mark.browser


def test_a_page_is_shown_and_its_console_messages_are_read(chromium: Browser) -> None:
    with a_visit(chromium) as visit:
        visit.page.set_content("<title>Hello</title><script>console.error('ouch')</script>")

        assert visit.page.title() == "Hello"
        assert [error.split(" (")[0] for error in visit.errors] == ["error: ouch"]


def test_no_other_host_is_reached(chromium: Browser) -> None:
    with a_visit(chromium) as visit, pytest.raises(BrowserError, match="ERR_NAME_NOT_RESOLVED"):
        visit.page.goto("http://example.com/")
