"""The real product with its ledger away: events are answered 202 all the same, and counted once."""

import contextlib
import os
import signal
import socketserver
import threading
from collections.abc import Generator, Iterator
from typing import Any

import httpx
import pytest

from tests.support.days import these_days
from tests.support.product import Product, adloom, an_open_folder, wait_until

pytestmark = pytest.mark.process

EVENTS = 60
COUNTED_SECONDS_MAX = 60.0  # Valkey is started again after ten seconds at most, and may die once more.


@pytest.fixture(scope="module")
def product() -> Iterator[Product]:
    with an_open_folder() as folder, Product(folder / "data", "--empty") as product:
        yield product.wait_until_ready()


@pytest.fixture
def admin(product: Product) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {product.token('admin')}"}
    with httpx.Client(base_url=product.control_url, headers=headers) as client:
        yield client


@pytest.fixture
def browser(product: Product) -> Iterator[httpx.Client]:
    """A browser that makes a new connection for each event, so that it meets a successor too."""
    with httpx.Client(base_url=product.delivery_url, headers={"Connection": "close"}) as client:
        yield client


def made(admin: httpx.Client, path: str, **body: object) -> dict[str, Any]:
    answer = admin.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def a_banner(admin: httpx.Client, browser: httpx.Client) -> dict[str, str]:
    """Make a banner and a placement, and wait until delivery knows them; give their names in an event."""
    placement = made(admin, "/admin/placements", slug="spooled", label="Home", layoutType="full_static")
    banner = made(
        admin,
        "/admin/banners",
        title="Autumn",
        primaryImageUrl="https://cdn.example.com/a.png",
        ctaUrl="https://shop.example.com/",
    )
    ids = {"bannerId": banner["id"], "placementId": placement["id"]}
    wait_until(lambda: sent(browser, "known", ids) == 202, seconds=5, what="known")
    return ids


def sent(browser: httpx.Client, correlation_id: str, ids: dict[str, str]) -> int:
    report = {"correlationId": correlation_id, **ids}
    return browser.post("/banners/events/impression", json=report).status_code


class HangsUp(socketserver.TCPServer):
    """Listens where Valkey did, and ends every connection at once."""

    allow_reuse_address = True


@contextlib.contextmanager
def no_valkey(product: Product) -> Generator[None]:
    """Kill Valkey, and take its port, so that none that is started in its place can be reached."""
    port, listening = product.installation.valkey_port, list[HangsUp]()
    assert port is not None

    def is_taken() -> bool:
        for pid in product.children("valkey"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):  # Another one was faster.
            listening.append(HangsUp(("127.0.0.1", port), socketserver.BaseRequestHandler))
        return bool(listening)

    wait_until(is_taken, seconds=15, what="no Valkey")
    [taken] = listening
    with taken:
        hanging_up = threading.Thread(target=taken.serve_forever, args=(0.01,))
        hanging_up.start()
        try:
            yield
        finally:
            taken.shutdown()
            hanging_up.join()


def counted(admin: httpx.Client, banner_id: str) -> int:
    answer = admin.get("/admin/stats/banners", params={**these_days(), "bannerId": banner_id})
    return answer.json()["totals"]["impressions"]


def waiting(product: Product) -> str:
    done = adloom("ledger", "spool", "--data-dir", str(product.data_dir))
    assert done.code == 0, done.err
    return done.out


def test_events_are_accepted_without_the_ledger_survive_a_kill_and_are_counted_once(
    product: Product, admin: httpx.Client, browser: httpx.Client
) -> None:
    ids = a_banner(admin, browser)

    with no_valkey(product):
        answers = [sent(browser, f"event-{number}", ids) for number in range(EVENTS)]
        ready = browser.get("/health/ready")
        lines = waiting(product)
        killed = product.kill("delivery")
        wait_until(
            lambda: killed not in product.children("delivery") and product.is_well(),
            seconds=15,
            what="delivery replaced",
        )
        # Some of them again: the client whose connection broke does not know.
        answers += [sent(browser, f"event-{number}", ids) for number in range(EVENTS // 2, 2 * EVENTS)]

    assert answers == [202] * len(answers)
    assert (ready.status_code, ready.json()["checks"]["valkey"]) == (200, "unavailable")
    assert ready.json()["checks"]["spool"]["waitingBytes"] > 0
    assert f"{EVENTS} events in 1 file" in lines
    assert "held by a living process" in lines
    wait_until(
        lambda: counted(admin, ids["bannerId"]) >= 2 * EVENTS + 1,
        seconds=COUNTED_SECONDS_MAX,
        what=f"all counted; it said:\n{product.said}",
    )
    wait_until(lambda: "0 events in 0 files" in waiting(product), seconds=10, what="drained")
    assert counted(admin, ids["bannerId"]) == 2 * EVENTS + 1
