"""The real `adloom up` stopped, killed, and started again."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import msgspec
import pytest

from adloom.runtime.embedded.binaries import can_reach
from adloom.runtime.valkey import open_valkey
from tests.support.product import Product, adloom, an_open_folder, wait_until

pytestmark = pytest.mark.process

STOP_SECONDS_MAX = 10.0
INTERPRETER = Path(sys.executable).resolve()
AS_NOBODY = ("--reuid=nobody", "--regid=nogroup", "--clear-groups")
# For an interpreter under /root: the user nobody may read it, and is still not root.
CAN_READ_ALL = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


class Stopped(msgspec.Struct, frozen=True):
    """An installation that was started, written to, and stopped by Ctrl-C."""

    data_dir: Path
    output: str
    seconds: float
    left_over: list[str]


@pytest.fixture(scope="module")
def stopped() -> Iterator[Stopped]:
    with an_open_folder() as folder, Product(folder / "data", "--empty") as product:
        product.wait_until_ready()
        asyncio.run(write(product))
        seconds = product.stop(signal.SIGINT)
        yield Stopped(product.data_dir, product.output, seconds, product.left_over())


async def write(product: Product) -> None:
    connection = await asyncpg.connect(product.database_url)
    await connection.execute("CREATE TABLE IF NOT EXISTS kept AS SELECT 'a row' AS what")
    await connection.close()
    async with open_valkey(product.redis_url) as valkey:
        await valkey.set("kept", "a key")


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


async def test_the_token_command_works_on_a_stopped_installation(stopped: Stopped) -> None:
    done = adloom("token", "--role", "advertiser", "--data-dir", str(stopped.data_dir))

    assert done.out.count(".") == 2
    assert "account" in done.err


async def test_the_doctor_says_how_to_start_a_stopped_installation(stopped: Stopped) -> None:
    done = adloom("doctor", "--data-dir", str(stopped.data_dir))

    assert done.code == 0, done.out
    assert "not running" in done.out
    assert "start it with `adloom up`" in done.out


async def test_data_is_there_after_a_stop_and_after_a_kill(stopped: Stopped) -> None:
    with Product(stopped.data_dir, "--empty") as product:
        product.wait_until_ready()
        after_stop = await read(product)
        assert "password: as on the first start" in product.output
        product.process.kill()
        product.process.wait()
        wait_until(lambda: not product.left_over(), seconds=5, what="no process left")

    with Product(stopped.data_dir, "--empty") as product:
        after_kill = await read(product.wait_until_ready())
        seconds = product.stop(signal.SIGTERM)

        assert seconds < STOP_SECONDS_MAX
        assert not product.left_over()
    assert after_stop == after_kill == ["a row", "a key"]


async def test_a_stop_during_the_creation_of_the_database_leaves_nothing_behind() -> None:
    with an_open_folder() as folder, Product(folder / "data") as product:
        wait_until(lambda: any(product.data_dir.glob("postgres.*")), seconds=30, what="initdb")

        seconds = product.stop(signal.SIGINT)

        assert seconds < STOP_SECONDS_MAX
        assert not product.left_over()
        assert not (product.data_dir / "lock").exists()
        assert not any(product.data_dir.glob("postgres*"))


@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="there is no setpriv")
async def test_the_product_runs_as_an_ordinary_user() -> None:
    capabilities = () if can_reach(INTERPRETER, "nobody") else CAN_READ_ALL
    with an_open_folder() as folder:
        shutil.chown(folder, "nobody", "nogroup")
        with Product(folder / "data", "--empty", as_user=("setpriv", *AS_NOBODY, *capabilities)) as product:
            product.wait_until_ready()

            assert product.is_well()
            assert (folder / "data" / "secrets.json").owner() == "nobody"


async def test_the_error_about_an_impossible_folder_says_what_to_change(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    done = adloom("up", "--data-dir", str(tmp_path / "file" / "data"))

    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "--data-dir" in done.err
