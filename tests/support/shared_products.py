"""Products that several files of tests use one after another: a start costs ten seconds of a processor.

The files of a product run on one worker, in the order below: first those that leave the product as it is, then
those that kill its processes. It is stopped after the last of them.
"""

import contextlib
import functools
import os
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path

import pytest
from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController

from tests.support.product import Product, a_data_folder, wait_until

HEALED_SECONDS_MAX = 60.0
PRODUCT_MARKERS = ("process", "browser")
# Fixture to files, in order.
FILES = {
    "sample_product": (
        "tests/sample/test_sample_lives.py",  # first: it wants nothing in the catalog but the sample
        "tests/browser/test_console_pictures.py",
        "tests/browser/test_console_campaign.py",
        "tests/docs/test_commands.py",  # last: it restores a backup over the database
    ),
    "killed_product": (
        "tests/browser/test_tag_neutral.py",
        "tests/app/test_up.py",
        "tests/app/test_whole_thread.py",
        "tests/chaos/test_storms.py",
        "tests/chaos/test_chaos.py",
    ),
    "shared_product": (
        "tests/app/test_auction_over_http.py",
        "tests/app/test_contextual_over_http.py",
        "tests/app/test_direct_over_http.py",
        "tests/browser/test_console_fields.py",
        "tests/browser/test_console_saved_report.py",
        "tests/browser/test_console_transfer.py",
        "tests/browser/test_console_upload.py",
        "tests/browser/test_tag_behaves.py",
        "tests/browser/test_tag_counts.py",
        "tests/browser/test_tag_kinds.py",
        "tests/browser/test_tag_preview.py",
        "tests/browser/test_tag_shows.py",
        "tests/browser/test_tag_text.py",
        "tests/docs/test_clients.py",
        "tests/app/test_learning_thread.py",
        "tests/app/test_spool_survives.py",  # last: it kills Valkey
    ),
    # These share a browser only: each has a console of its own, or none.
    "console_browser": (
        "tests/browser/test_console_log_in.py",
        "tests/browser/test_console_consent.py",
        "tests/browser/test_console_hostile_names.py",
        "tests/browser/test_console_sites.py",
        "tests/browser/test_console_why.py",
        "tests/browser/test_chart_labels.py",
        "tests/browser/test_chromium.py",
    ),
}
PRODUCTS = {file: name for name, files in FILES.items() for file in files}


def order_of(file: str) -> int:
    """Return the place of a file among those that share a product; it is greater for all others."""
    return list(PRODUCTS).index(file) if file in PRODUCTS else len(PRODUCTS)


class SharedProductScheduling(LoadFileScheduling):
    """Gives all files of a product to one worker; any other file is by itself.

    Tests of the real product wait much, so there are more workers than processors. But only as many as processors
    run such tests at once: they have bounds of time.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        occupied = sum(other is not node and self._runs_product(other) for other in self.nodes)
        if occupied >= (os.cpu_count() or 1):
            others = (scope for scope in self.workqueue if not self._is_of_product(scope))
            self.workqueue.move_to_end(next(others, next(iter(self.workqueue))), last=False)
        super()._assign_work_unit(node)

    def _runs_product(self, node: WorkerController) -> bool:
        assigned = self.assigned_work[node].items()
        return any(self._is_of_product(scope) and not all(tests.values()) for scope, tests in assigned)

    def _is_of_product(self, scope: str) -> bool:
        return scope in FILES or has_product(self.config.rootpath / scope)

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return PRODUCTS.get(file, file)


@functools.cache
def has_product(file: Path) -> bool:
    """Look for the markers in the text: only workers import tests."""
    text = file.read_text(encoding="utf-8")
    return any(f"pytest.mark.{marker}" in text for marker in PRODUCT_MARKERS)


def is_of_product(file: Path) -> bool:
    """Return whether all tests of a file run the real product."""
    _, _, rest = file.read_text(encoding="utf-8").partition("\npytestmark = ")
    marks, _, _ = rest.partition("\n\n")
    return any(f"pytest.mark.{marker}" in marks for marker in PRODUCT_MARKERS)


class SharedProducts:
    """The running products of this test process, and the files that still need them."""

    def __init__(self, items: Iterable[pytest.Item]) -> None:
        self._running: dict[str, tuple[Product, contextlib.ExitStack]] = {}
        self._users: dict[str, set[Path]] = {name: set() for name in FILES}
        for item in items:
            for name in FILES.keys() & set(getattr(item, "fixturenames", ())):
                file = item.nodeid.split("::")[0]
                assert file in FILES[name], f"{file} uses {name}: it needs a place in {__name__}.FILES"
                self._users[name].add(item.path)

    @contextlib.contextmanager
    def borrow(
        self, name: str, user: Path, flags: Sequence[str] = (), **variables: str
    ) -> Generator[Product]:
        """Start the product if it does not run, and stop it after its last user."""
        if name not in self._running:
            self._start(name, flags, variables)
        product = self._running[name][0]
        wait_until(product.is_well, seconds=HEALED_SECONDS_MAX, what="healed")
        try:
            yield product
        finally:
            self._users[name].discard(user)
            if not self._users[name]:
                self._stop(name)

    def stop(self) -> None:
        for name in list(self._running):
            self._stop(name)

    def _start(self, name: str, flags: Sequence[str], variables: dict[str, str]) -> None:
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(a_data_folder())
            product = stack.enter_context(Product(folder / "data", *flags, variables=variables))
            product.wait_until_ready()
            self._running[name] = product, stack.pop_all()

    def _stop(self, name: str) -> None:
        _, stack = self._running.pop(name)
        stack.close()
