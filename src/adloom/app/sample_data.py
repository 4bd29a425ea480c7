"""The sample of an installation: loaded and removed over the admin API, remembered in the data directory."""

import asyncio
from contextlib import closing
from datetime import datetime, timedelta

import asyncpg
import msgspec

from adloom.core.actor import Actor, Role
from adloom.core.ids import IdSource
from adloom.resource.changes import read_version
from adloom.runtime.auth import issue_access_token
from adloom.runtime.installation import DataDirectory
from adloom.runtime.postgres import CONNECT_SECONDS_MAX
from adloom.sample.admin import AdminClient, RefusedError
from adloom.sample.load import load_sample
from adloom.sample.manifest import FILE_NAME, Manifest, State
from adloom.sample.remove import Removed, remove_sample

SUBJECT = "adloom-sample"
TOKEN_LIFETIME = timedelta(minutes=5)


class SampleTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Where the sample goes, and with which right."""

    directory: DataDirectory
    control_url: str
    delivery_url: str
    jwt_secret: str


async def is_catalog_untouched(database_url: str) -> bool:
    """Tell whether there is room for a sample: by itself it is never loaded into what somebody has made."""
    connection = await asyncpg.connect(database_url, timeout=CONNECT_SECONDS_MAX)
    try:
        # It is raised by every write.
        return await read_version(connection) == 0
    finally:
        await connection.close()


def read_manifest(directory: DataDirectory) -> Manifest | None:
    """Read what the sample has made; None where there is none."""
    return directory.read(FILE_NAME, Manifest)


def is_loaded(directory: DataDirectory) -> bool:
    """Tell whether the sample is there, whole."""
    manifest = read_manifest(directory)
    return manifest is not None and manifest.state is State.THERE


def fill(site: SampleTarget, *, ids: IdSource, now: datetime) -> Manifest:
    """Load the sample; what a load or a removal that broke off has left is taken away before."""
    manifest = read_manifest(site.directory)
    if manifest is not None and manifest.state is State.THERE:
        return manifest
    if manifest is not None and manifest.state is not State.REMOVED:
        manifest = clear(site, manifest, now=now).manifest
    try:
        with closing(_admin(site, now)) as admin:
            return load_sample(
                admin,
                manifest,
                keep=lambda it: site.directory.write(FILE_NAME, it),
                new_id=lambda: str(ids.new()),
                delivery_url=site.delivery_url,
                now=now,
            )
    except RefusedError:
        begun = read_manifest(site.directory)
        assert begun is not None, "it is kept before anything is made"
        clear(site, begun, now=now)
        raise


async def fill_in_thread(site: SampleTarget, *, ids: IdSource, now: datetime) -> Manifest:
    """Load the sample beside other work."""
    return await asyncio.to_thread(fill, site, ids=ids, now=now)


def clear(site: SampleTarget, manifest: Manifest, *, now: datetime) -> Removed:
    """Take the sample away, and forget it where nothing had to stay."""
    with closing(_admin(site, now)) as admin:
        removed = remove_sample(admin, manifest, keep=lambda it: site.directory.write(FILE_NAME, it))
    if removed.manifest.count:
        site.directory.write(FILE_NAME, removed.manifest)
    else:
        site.directory.delete(FILE_NAME)
    return removed


def _admin(site: SampleTarget, now: datetime) -> AdminClient:
    actor = Actor(subject=SUBJECT, role=Role.ADMIN)
    token = issue_access_token(site.jwt_secret, actor, now=now, lifetime=TOKEN_LIFETIME)
    return AdminClient(site.control_url, token)
