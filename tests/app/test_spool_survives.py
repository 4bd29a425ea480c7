"""The real product without Valkey: events are still accepted, and counted once."""

import contextlib
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.admin_api import create_ad, create_placement
from tests.support.days import these_days
from tests.support.product import Product, adloom, wait_until

pytestmark = pytest.mark.process

EVENTS = 60
COUNTED_SECONDS_MAX = 60.0  # Valkey is started again after ten seconds at most, and may die once more.


@pytest.fixture(scope="module")
def product(shared_product: Product) -> Product:
    return shared_product


@pytest.fixture
def admin(product: Product) -> Iterator[httpx.Client]:
    with product.admin() as client:
        yield client


@pytest.fixture
def browser(product: Product) -> Iterator[httpx.Client]:
    """A browser with a new connection for each event, so that it also reaches a restarted process."""
    with httpx.Client(base_url=product.delivery_url, headers={"Connection": "close"}) as client:
        yield client


def create_known_banner(admin: httpx.Client, browser: httpx.Client) -> dict[str, str]:
    """Create a banner and a placement, and wait until delivery knows them; return their ids."""
    ids = create_ad(admin, create_placement(admin, "spooled"))
    wait_until(
        lambda: browser.get("/banners/serve/spooled").json().get("banners"), seconds=30, what="it is served"
    )
    assert report_impression(browser, "known", ids) == 202
    return ids


def report_impression(browser: httpx.Client, correlation_id: str, ids: dict[str, str]) -> int:
    report = {"correlationId": correlation_id, **ids}
    return browser.post("/banners/events/impression", json=report).status_code


@contextlib.contextmanager
def without_valkey(product: Product) -> Generator[None]:
    """Kill Valkey and take the place of its socket, so that a restarted one cannot listen."""
    place = Path(product.installation.valkey_socket_dir or "") / "valkey.sock"

    def is_taken() -> bool:
        if not place.is_dir():
            place.unlink(missing_ok=True)
            with contextlib.suppress(FileExistsError):  # A restarted Valkey was faster.
                place.mkdir()
        for pid in product.children("valkey"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return place.is_dir()

    wait_until(is_taken, seconds=30, what="no Valkey")
    try:
        yield
    finally:
        place.rmdir()


def counted(admin: httpx.Client, banner_id: str) -> int:
    answer = admin.get("/admin/stats/banners", params={**these_days(), "bannerId": banner_id})
    return answer.raise_for_status().json()["totals"]["impressions"]


def spool_report(product: Product) -> str:
    done = adloom("ledger", "spool", "--data-dir", str(product.data_dir))
    assert done.code == 0, done.err
    return done.out


def test_events_accepted_without_valkey_survive_a_kill_and_are_counted_once(
    product: Product, admin: httpx.Client, browser: httpx.Client
) -> None:
    ids = create_known_banner(admin, browser)

    with without_valkey(product):
        answers = [report_impression(browser, f"event-{number}", ids) for number in range(EVENTS)]
        wait_until(
            lambda: browser.get("/health/ready").json()["checks"]["valkey"] != "ok",
            seconds=30,
            what="noticed",
        )
        ready = browser.get("/health/ready")
        lines = spool_report(product)
        killed = product.kill("delivery")
        wait_until(
            lambda: killed not in product.children("delivery") and product.is_well(),
            seconds=30,
            what="delivery replaced",
        )
        # Some are sent again, as by a client whose connection broke.
        answers += [
            report_impression(browser, f"event-{number}", ids) for number in range(EVENTS // 2, 2 * EVENTS)
        ]

    assert answers == [202] * len(answers)
    assert (ready.status_code, ready.json()["checks"]["valkey"]) == (200, "unavailable")
    assert ready.json()["checks"]["spool"]["waitingBytes"] > 0
    assert f"{EVENTS} events in 1 file" in lines
    assert "held by a living process" in lines
    wait_until(
        lambda: counted(admin, ids["bannerId"]) >= 2 * EVENTS + 1,
        seconds=COUNTED_SECONDS_MAX,
        what=f"all counted; it printed:\n{product.output}",
    )
    wait_until(lambda: "0 events in 0 files" in spool_report(product), seconds=30, what="drained")
    assert counted(admin, ids["bannerId"]) == 2 * EVENTS + 1
