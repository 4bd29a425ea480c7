"""The sample beside a running product: loaded into a catalog that nobody has touched, with readers while it is there."""

import asyncio
from datetime import datetime

from adloom.app.progress import Progress
from adloom.app.sample_data import Site, filled, is_catalog_untouched, is_there, manifest_of
from adloom.app.up.plan import House
from adloom.core.ids import IdSource
from adloom.runtime.http.probe import url_host
from adloom.runtime.installation import DataDirectory
from adloom.runtime.supervisor.child import StartError
from adloom.runtime.supervisor.supervisor import Supervisor
from adloom.sample.admin import SampleError
from adloom.sample.manifest import State

LOOK_SECONDS = 1.0


async def load_at_start(
    house: House, directory: DataDirectory, progress: Progress, *, ids: IdSource, now: datetime
) -> None:
    """Load the sample at the first start, or again where an earlier load broke off."""
    manifest = manifest_of(directory)
    is_broken_off = manifest is not None and manifest.state is State.LOADING
    if not (is_broken_off or await is_catalog_untouched(house.servers.database_url)):
        return
    with progress.step("Sample data"):
        try:
            await filled(site_of(house, directory), ids=ids, now=now)
        except SampleError as error:
            raise StartError(f"The sample cannot be loaded: {error} Start without it: --empty.") from error


def site_of(house: House, directory: DataDirectory) -> Site:
    """Tell where the sample of a running product goes."""
    return Site(
        directory=directory,
        # Not the public address, which may be a proxy's that does not run yet.
        control_url=f"http://{url_host(house.installation.host)}:{house.installation.control_port}",
        delivery_url=house.delivery_url,
        jwt_secret=house.jwt_secret,
    )


async def keep_readers(house: House, directory: DataDirectory, supervisor: Supervisor) -> None:
    """Have simulated readers while there is a sample: they leave with it, and come back with it."""
    while house.sample is not None:
        while not is_there(directory):  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(LOOK_SECONDS)
        await supervisor.start([house.sample])
        await supervisor.finished(house.sample.program.name)
    await asyncio.Event().wait()
