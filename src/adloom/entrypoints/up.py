"""`adloom up`: the whole product on one machine, until it is told to stop."""

import asyncio
import contextlib
import sys
from collections.abc import Mapping

import msgspec

from adloom.core.clock import Clock, SystemClock
from adloom.core.ids import SystemIds
from adloom.entrypoints.house import House, UpOptions, opened_listeners, planned_house
from adloom.entrypoints.probe import connectable
from adloom.entrypoints.progress import Progress
from adloom.entrypoints.sample_data import fill_with_sample, is_catalog_untouched
from adloom.entrypoints.schema import bring_up_to_date
from adloom.identity.first_admin import ensure_first_admin
from adloom.runtime.installation import DataDirectory, Secrets, made_secrets
from adloom.runtime.logs import configure_logs
from adloom.runtime.postgres import open_pool
from adloom.runtime.processes.supervisor import Supervisor, supervised

ADMIN_EMAIL = "admin@adloom.local"
SAMPLE_PATH = "/sample"


def run(options: UpOptions, variables: Mapping[str, str]) -> None:
    """Run everything until a signal asks to stop."""
    if sys.stderr.isatty():
        # Who looks on is told what goes wrong; every request would bury what we say.
        variables = {"ADLOOM_LOG_LEVEL": "warning", **variables}
    progress = Progress()
    clock = SystemClock()
    directory = DataDirectory(options.data_directory)
    directory.make()
    with directory.locked(), contextlib.ExitStack() as closing:
        listeners = opened_listeners(options, closing)
        secrets = _kept_secrets(directory)
        house = planned_house(options, variables, listeners, secrets, clock)
        configure_logs(house.telemetry)
        directory.keep_installation(house.installation)

        async def work(supervisor: Supervisor) -> None:
            # Closed first when the work ends: connections that come while we stop are refused, not kept waiting.
            with closing:
                is_new = await _start(house, supervisor, secrets, progress, clock)
                if not options.is_empty:
                    await _load_sample(house, progress, clock)
                _tell(house, options, secrets if is_new else None, progress)
                await asyncio.Event().wait()

        asyncio.run(supervised(work))
    progress.say("adloom stopped")


async def _start(
    house: House, supervisor: Supervisor, secrets: Secrets, progress: Progress, clock: Clock
) -> bool:
    """Start all, each part when what it needs is there; tells whether somebody can log in for the first time."""
    servers = house.servers
    if servers.postgres is not None:
        with progress.step("PostgreSQL"):
            await supervisor.start([servers.postgres])
    if servers.valkey is not None:
        with progress.step("Valkey"):
            await supervisor.start([servers.valkey])
    with progress.step("Database schema"):
        await bring_up_to_date(servers.database_url)
        async with open_pool(servers.database_url, size_max=1) as pool:
            is_new = await ensure_first_admin(
                pool, ADMIN_EMAIL, secrets.admin_password, clock.now(), SystemIds()
            )
    with progress.step("Delivery, control, worker"):
        await supervisor.start(house.children)
    return is_new


async def _load_sample(house: House, progress: Progress, clock: Clock) -> None:
    """Put something to look at into a catalog that nobody has touched."""
    if not await is_catalog_untouched(house.servers.database_url):
        return
    with progress.step("Sample data"):
        # Not the public address, which may be a proxy's that does not run yet.
        control_url = f"http://{connectable(house.installation.host)}:{house.installation.control_port}"
        await fill_with_sample(
            control_url, house.jwt_secret, delivery_url=house.delivery_url, now=clock.now()
        )


def _kept_secrets(directory: DataDirectory) -> Secrets:
    secrets = directory.secrets()
    if secrets is None:
        secrets = made_secrets()
        directory.keep_secrets(secrets)
    elif not secrets.sealing_secret:
        secrets = msgspec.structs.replace(secrets, sealing_secret=made_secrets().sealing_secret)
        directory.keep_secrets(secrets)
    return secrets


def _tell(house: House, options: UpOptions, new_secrets: Secrets | None, progress: Progress) -> None:
    """Say where everything is; who sees it for the first time is told where to begin."""
    directory = DataDirectory(options.data_directory)
    width = max(len(house.delivery_url), len(house.control_url)) + len(SAMPLE_PATH)
    progress.say()
    if not options.is_empty:
        progress.fact("sample", f"{house.delivery_url}{SAMPLE_PATH}".ljust(width), "a page with ads on it")
    progress.fact("delivery", house.delivery_url.ljust(width), "where pages ask for ads")
    progress.fact("control", house.control_url.ljust(width), "the admin API")
    progress.fact("data", str(directory.path))
    progress.say()
    progress.say(f"  email: {ADMIN_EMAIL}")
    if new_secrets is not None:
        progress.say(f"  password: {new_secrets.admin_password}")
    else:
        progress.say(f"  password: as on the first start; it is kept in {directory.secrets_path}")
    progress.say()
    if new_secrets is not None:
        progress.say(f"  {_first_steps(house, options)}")
    progress.say("  Ctrl-C stops everything; the next start finds its data again.")
    progress.say()
    progress.ready(f"adloom ready: delivery {house.delivery_url}, control {house.control_url}")


def _first_steps(house: House, options: UpOptions) -> str:
    if options.is_empty:
        return "Make your first ad: README.md, «Your first ad»."
    return f"Open {house.delivery_url}{SAMPLE_PATH} in a browser, then make an ad of your own: README.md, «Your first ad»."
