"""The real `adloom up` stopped, killed, and started again."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import httpx
import msgspec
import pytest

from adloom.runtime.embedded.binaries import can_reach
from adloom.runtime.schema import read_newest_revision
from adloom.runtime.valkey import open_valkey
from tests.chaos.budgets.crowd import asked
from tests.chaos.budgets.market import PRICE_PAISA, Market, awaited
from tests.support.days import these_days
from tests.support.product import NO_CRAWLS, Product, a_data_folder, adloom, wait_until

pytestmark = pytest.mark.process

STOP_SECONDS_MAX = 40.0
LEASED_SECONDS_MAX = 60.0
CHARGED_SECONDS_MAX = 60.0
# Less than the five minutes in which what a process that vanished may have offered is held.
OFFERED_SECONDS_MAX = 60.0
INTERPRETER = Path(sys.executable).resolve()
AS_NOBODY = ("--reuid=nobody", "--regid=nogroup", "--clear-groups")
# For an interpreter under /root: the user nobody may read it, and is still not root.
CAN_READ_ALL = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")


class Stopped(msgspec.Struct, frozen=True):
    """An installation that an ordinary user started, wrote to, and stopped by Ctrl-C."""

    data_dir: Path
    output: str
    was_well: bool
    seconds: float
    left_over: list[str]


@pytest.fixture(scope="module")
def as_user() -> tuple[str, ...]:
    """The words that start a program as an ordinary user; none where the tests are no root."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return ()
    capabilities = () if can_reach(INTERPRETER, "nobody") else CAN_READ_ALL
    return ("setpriv", *AS_NOBODY, *capabilities)


@pytest.fixture(scope="module")
def stopped(as_user: tuple[str, ...]) -> Iterator[Stopped]:
    with a_data_folder() as folder:
        if as_user:
            shutil.chown(folder, "nobody", "nogroup")
        with Product(folder / "data", "--empty", "--workers", "1", *NO_CRAWLS, as_user=as_user) as product:
            was_well = product.wait_until_ready().is_well()
            asyncio.run(write(product))
            seconds = product.stop(signal.SIGINT)
            yield Stopped(product.data_dir, product.output, was_well, seconds, product.left_over())


@pytest.fixture(scope="module")
def restarted(stopped: Stopped, as_user: tuple[str, ...]) -> Iterator[Product]:
    with Product(stopped.data_dir, "--empty", "--workers", "1", *NO_CRAWLS, as_user=as_user) as product:
        yield product.wait_until_ready()


async def write(product: Product) -> None:
    connection = await asyncpg.connect(product.database_url)
    await connection.execute("CREATE TABLE IF NOT EXISTS kept AS SELECT 'a row' AS what")
    await connection.close()
    async with open_valkey(product.redis_url) as valkey:
        await valkey.set("kept", "a key")
    with product.admin() as admin:
        market = Market(product, admin)
        campaign = market.an_ad("kept", budgetDailyPaisa=PRICE_PAISA)
        await market.leased(campaign, seconds=LEASED_SECONDS_MAX)


async def read(product: Product) -> list[str]:
    connection = await asyncpg.connect(product.database_url)
    row: str = await connection.fetchval("SELECT what FROM kept")
    await connection.close()
    async with open_valkey(product.redis_url) as valkey:
        key = await valkey.get("kept")
    assert isinstance(key, bytes)
    return [row, key.decode()]


async def test_ctrl_c_leaves_no_process_and_no_lock_file(stopped: Stopped) -> None:
    assert stopped.seconds < STOP_SECONDS_MAX
    assert stopped.left_over == []
    assert not (stopped.data_dir / "lock").exists()
    assert stopped.output.endswith("adloom stopped\n")


async def test_the_product_runs_as_an_ordinary_user(stopped: Stopped, as_user: tuple[str, ...]) -> None:
    if not as_user:
        pytest.skip("only root can become another user, and with setpriv")

    assert stopped.was_well
    assert (stopped.data_dir / "secrets.json").owner() == "nobody"


async def test_the_token_command_works_on_a_stopped_installation(stopped: Stopped) -> None:
    done = adloom("token", "--role", "advertiser", "--data-dir", str(stopped.data_dir))

    assert done.out.count(".") == 2
    assert "account" in done.err


async def test_the_doctor_says_how_to_start_a_stopped_installation(stopped: Stopped) -> None:
    done = adloom("doctor", "--data-dir", str(stopped.data_dir))

    assert done.code == 0, done.out
    assert "not running" in done.out
    assert f"revision {read_newest_revision()}" in done.out
    assert "start it with `adloom up`" in done.out


async def test_a_lease_is_returned_at_a_clean_stop_and_granted_again_after_the_next_start(
    restarted: Product,
) -> None:
    offers = await awaited(lambda: asked(restarted.delivery_url, ["kept"]), bool, seconds=OFFERED_SECONDS_MAX)

    assert len(offers) == 1


async def test_a_backup_of_a_running_installation_replaces_another_with_all_events_and_all_money(
    restarted: Product, tmp_path: Path
) -> None:
    archive = tmp_path / "adloom.backup"
    with restarted.admin() as admin, a_data_folder() as folder:
        market = Market(restarted, admin)
        campaign = market.an_ad("saved", budgetDailyPaisa=100 * PRICE_PAISA)
        await market.leased(campaign, seconds=LEASED_SECONDS_MAX)
        offers = await market.offered(["saved"], count=6, seconds=LEASED_SECONDS_MAX)
        await asyncio.sleep(0.2)  # Nobody sees an ad sooner.
        market.seen(offers[:3])
        await market.charged([campaign], count=3, seconds=CHARGED_SECONDS_MAX)
        worker = restarted.children("worker")[0]
        os.kill(worker, signal.SIGSTOP)
        # Accepted, and not counted while the backup is made; one of them again, as by a client without an answer.
        market.seen([*offers[3:], offers[3]])
        saved = adloom("backup", str(archive), "--data-dir", str(restarted.data_dir))
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)
        assert saved.code == 0, saved.err
        charges = await market.charged([campaign], count=len(offers), seconds=CHARGED_SECONDS_MAX)

        restored = adloom("restore", str(archive), "--data-dir", str(folder / "data"))
        assert restored.code == 0, restored.err
        (folder / "data" / "secrets.json").write_text("those of another installation")
        replaced = adloom("restore", str(archive), "--data-dir", str(folder / "data"), "--replace")
        assert replaced.code == 0, replaced.err
        [aside] = (folder / "data").glob("replaced-*")
        assert str(aside) in replaced.out
        assert {"postgres", "valkey", "secrets.json"} <= {one.name for one in aside.iterdir()}
        assert (aside / "secrets.json").read_text() == "those of another installation"
        with Product(folder / "data", "--empty", "--workers", "1", *NO_CRAWLS) as product:
            with product.wait_until_ready().admin() as other:
                again = await Market(product, other).charged(
                    [campaign], count=len(offers), seconds=CHARGED_SECONDS_MAX
                )
                assert counted(other) == counted(admin)
            refused = adloom("restore", str(archive), "--data-dir", str(folder / "data"), "--replace")

    assert sorted(again) == sorted(charges)
    assert len(charges) == len(offers)
    assert refused.code == 1
    assert "is in use by another adloom" in refused.err


def counted(admin: httpx.Client) -> dict[str, int]:
    answer = admin.get("/admin/stats/banners", params=these_days())
    assert answer.status_code == 200, answer.text
    return answer.json()["totals"]


async def test_data_is_there_after_a_stop_and_after_a_kill(
    restarted: Product, as_user: tuple[str, ...]
) -> None:
    after_stop = await read(restarted)
    assert str(restarted.data_dir / "secrets.json") in restarted.output
    restarted.process.kill()
    restarted.process.wait()
    wait_until(lambda: not restarted.left_over(), seconds=30, what="no process left")

    with Product(restarted.data_dir, "--empty", "--workers", "1", *NO_CRAWLS, as_user=as_user) as product:
        after_kill = await read(product.wait_until_ready())
        seconds = product.stop(signal.SIGTERM)

        assert seconds < STOP_SECONDS_MAX
        assert not product.left_over()
    assert after_stop == after_kill == ["a row", "a key"]


async def test_a_stop_during_the_creation_of_the_database_leaves_nothing_behind() -> None:
    with a_data_folder() as folder, Product(folder / "data") as product:
        wait_until(lambda: any(product.data_dir.glob("postgres.*")), seconds=30, what="initdb")

        seconds = product.stop(signal.SIGINT)

        assert seconds < STOP_SECONDS_MAX
        assert not product.left_over()
        assert not (product.data_dir / "lock").exists()
        assert not any(product.data_dir.glob("postgres*"))


async def test_the_error_about_an_impossible_folder_says_what_to_change(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    done = adloom("up", "--data-dir", str(tmp_path / "file" / "data"))

    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "--data-dir" in done.err
