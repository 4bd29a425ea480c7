"""The sample of an installation: loaded and removed over the admin API, remembered in the data directory."""

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from adloom.app.up.sample import FILL, read_manifest
from adloom.core.caller import SAMPLE, Caller, Role
from adloom.core.clock import SystemClock
from adloom.core.ids import IdSource, SystemIds
from adloom.runtime.auth.access_token import issue_access_token
from adloom.runtime.installation import DataDirectory, InstallationError, find_jwt_secret
from adloom.runtime.ports import format_url_host
from adloom.sample.admin import AdminClient, RefusedError, SampleError
from adloom.sample.load import Removed, give_pages, load_sample, remove_sample
from adloom.sample.manifest import FILE_NAME, Manifest, State
from adloom.sample.removal import Stays

TOKEN_LIFETIME = timedelta(minutes=5)

Print = Callable[[str], None]

# What belongs to a campaign is shown as the campaign.
SHOWN_AS = {"links": "campaign", "assignments": "campaign", "creatives": "campaign"}

MANIFEST_MODE = 0o644  # It has no secrets, and the simulated visitors run as another user than root.


class SampleTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Where the sample goes, and with which right."""

    directory: DataDirectory
    control_url: str
    delivery_url: str
    jwt_secret: str


def main() -> None:
    """Load the sample, or make its pages known: a process of `adloom up`, which needs all of this only once."""
    action, directory, control_url, delivery_url = sys.argv[1:]
    target = SampleTarget(
        directory=DataDirectory(Path(directory)),
        control_url=control_url,
        delivery_url=delivery_url,
        jwt_secret=os.environ["JWT_SECRET"],
    )
    now = SystemClock().now()
    try:
        if action == FILL:
            fill(target, ids=SystemIds(), now=now)
        else:
            give(target, now=now)
    except SampleError as error:
        raise SystemExit(str(error)) from error


def fill(target: SampleTarget, *, ids: IdSource, now: datetime) -> Manifest:
    """Load the sample; the remains of an interrupted load or removal are removed first."""
    manifest = read_manifest(target.directory)
    if manifest is not None and manifest.state is State.THERE:
        return manifest
    if manifest is not None and manifest.state is not State.REMOVED:
        manifest = clear(target, manifest, now=now).manifest
    try:
        with closing(_make_admin(target, now)) as admin:
            return load_sample(
                admin,
                manifest,
                keep=lambda it: target.directory.write(FILE_NAME, it, mode=MANIFEST_MODE),
                new_id=lambda: str(ids.make()),
                delivery_url=target.delivery_url,
                now=now,
            )
    except RefusedError:
        begun = read_manifest(target.directory)
        assert begun is not None, "it is kept before anything is made"
        clear(target, begun, now=now)
        raise


def give(target: SampleTarget, *, now: datetime) -> None:
    """Make the pages of the magazine known, where they are not: after the start, which does not wait for it."""
    manifest = read_manifest(target.directory)
    if manifest is not None and manifest.state is State.THERE:
        with closing(_make_admin(target, now)) as admin:
            give_pages(admin, manifest)


def clear(target: SampleTarget, manifest: Manifest, *, now: datetime) -> Removed:
    """Remove the sample, and its manifest if nothing had to stay."""
    with closing(_make_admin(target, now)) as admin:
        removed = remove_sample(
            admin, manifest, keep=lambda it: target.directory.write(FILE_NAME, it, mode=MANIFEST_MODE)
        )
    if removed.manifest.count:
        target.directory.write(FILE_NAME, removed.manifest, mode=MANIFEST_MODE)
    else:
        target.directory.delete(FILE_NAME)
    return removed


def _make_admin(target: SampleTarget, now: datetime) -> AdminClient:
    caller = Caller(subject=SAMPLE, role=Role.ADMIN)
    token = issue_access_token(target.jwt_secret, caller, now=now, lifetime=TOKEN_LIFETIME)
    return AdminClient(target.control_url, token)


def print_status(directory: DataDirectory, print_line: Print) -> None:
    manifest = read_manifest(directory)
    match None if manifest is None else manifest.state:
        case State.THERE:
            assert manifest is not None
            print_line(
                f"The sample is there, since {manifest.loaded_at:%Y-%m-%d %H:%M} UTC: {_count_all(manifest)}."
            )
            print_line("`adloom sample remove` takes it away.")
        case State.REMOVED:
            assert manifest is not None
            print_line(f"The sample is removed, but for what something else uses: {_count_all(manifest)}.")
            print_line("`adloom sample remove` looks again, `adloom sample load` brings it back.")
        case State.LOADING | State.REMOVING:
            print_line("The sample is neither there nor gone: loading or removing it was broken off.")
            print_line("`adloom sample remove` and `adloom sample load` both end that.")
        case None:
            print_line("There is no sample. `adloom sample load` brings it.")


def remove(variables: Mapping[str, str], directory: DataDirectory, print_line: Print) -> None:
    manifest = read_manifest(directory)
    if manifest is None:
        print_line("There is no sample to remove.")
        return
    removed = clear(_find_target(variables, directory), manifest, now=SystemClock().now())
    print_line(
        f"The sample is removed: {removed.count} things. What it was seen and clicked stays in the statistics."
    )
    for stays in removed.stays:
        print_line(f"  kept: {_explain(stays)}")


def load(variables: Mapping[str, str], directory: DataDirectory, print_line: Print) -> None:
    manifest = read_manifest(directory)
    if manifest is not None and manifest.state is State.THERE:
        print_line("The sample is there already. `adloom sample status` tells what it is.")
        return
    target = _find_target(variables, directory)
    manifest = fill(target, ids=SystemIds(), now=SystemClock().now())
    give(target, now=SystemClock().now())
    print_line(f"The sample is loaded: {_count_all(manifest)}.")
    print_line(f"Open {target.delivery_url}/sample.")


def _find_target(variables: Mapping[str, str], directory: DataDirectory) -> SampleTarget:
    installation = directory.read_installation()
    if installation is None or directory.read_holder_pid() is None:
        raise InstallationError(
            f"No `adloom up` runs on {directory.path}. Start it, or name another --data-dir."
        )
    host = format_url_host(installation.control_host or installation.host)
    return SampleTarget(
        directory=directory,
        control_url=f"http://{host}:{installation.control_port}",
        delivery_url=_find_public_url(variables) or f"http://{host}:{installation.delivery_port}",
        jwt_secret=find_jwt_secret(variables, directory),
    )


def _find_public_url(variables: Mapping[str, str]) -> str | None:
    given = variables.get("ADLOOM_DELIVERY_URL", "").rstrip("/")
    return given if urlsplit(given).netloc else None


def _count_all(manifest: Manifest) -> str:
    return ", ".join(_count(len(ids), _choose_word(kind)) for kind, ids in manifest.things.items() if ids)


def _count(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _choose_word(kind: str) -> str:
    """Return `ad account` for `adAccounts`."""
    return SHOWN_AS.get(kind) or re.sub("([A-Z])", r" \1", kind).lower().removesuffix("s")


def _explain(stays: Stays) -> str:
    user = stays.used_by
    thing = f'the {_choose_word(stays.kind)} "{stays.name}"'
    return (
        f'{thing}, because your {_choose_word(user.kind)} "{user.name}" uses it'
        if user.kind
        else f"{thing}: {user.name}"
    )


if __name__ == "__main__":
    main()
