"""The sample beside a running product: loaded into a catalog that nobody has touched, with readers while it is there."""

import asyncio
from datetime import datetime

from adloom.app.progress import StepProgress
from adloom.app.sample_data import (
    SampleTarget,
    fill_in_thread,
    is_catalog_untouched,
    is_loaded,
    read_manifest,
)
from adloom.app.up.plan import UpPlan
from adloom.core.ids import IdSource
from adloom.runtime.http.probe import url_host
from adloom.runtime.installation import DataDirectory
from adloom.runtime.supervisor.child import StartError
from adloom.runtime.supervisor.supervisor import Supervisor
from adloom.sample.admin import SampleError
from adloom.sample.manifest import State

LOOK_SECONDS = 1.0


async def load_at_start(
    house: UpPlan, directory: DataDirectory, progress: StepProgress, *, ids: IdSource, now: datetime
) -> None:
    """Load the sample at the first start, or again where an earlier load broke off."""
    manifest = read_manifest(directory)
    is_broken_off = manifest is not None and manifest.state is State.LOADING
    if not (is_broken_off or await is_catalog_untouched(house.servers.database_url)):
        return
    with progress.step("Sample data"):
        try:
            await fill_in_thread(site_of(house, directory), ids=ids, now=now)
        except SampleError as error:
            raise StartError(f"The sample cannot be loaded: {error} Start without it: --empty.") from error


def site_of(house: UpPlan, directory: DataDirectory) -> SampleTarget:
    """Tell where the sample of a running product goes."""
    return SampleTarget(
        directory=directory,
        # Not the public address, which may be a proxy's that does not run yet.
        control_url=f"http://{url_host(house.installation.host)}:{house.installation.control_port}",
        delivery_url=house.delivery_url,
        jwt_secret=house.jwt_secret,
    )


async def run_sample_visitors(house: UpPlan, directory: DataDirectory, supervisor: Supervisor) -> None:
    """Have simulated readers while there is a sample: they leave with it, and come back with it."""
    while house.sample is not None:
        while not is_loaded(directory):  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(LOOK_SECONDS)
        await supervisor.start([house.sample])
        await supervisor.wait_finished(house.sample.program.name)
    await asyncio.Event().wait()
