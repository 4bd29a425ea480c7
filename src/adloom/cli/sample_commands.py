"""What `adloom sample …` does."""

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from adloom.app.sample_data import SampleTarget, clear, fill, read_manifest
from adloom.cli.token import signing_secret
from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.runtime.http.probe import url_host
from adloom.runtime.installation import DataDirectory, InstallationError
from adloom.sample.manifest import Manifest, State
from adloom.sample.removal import Stays

Say = Callable[[str], None]

WORDS = {
    "campaigns": "campaign",
    "placements": "placement",
    "banners": "banner",
    "sites": "site",
    "brands": "brand",
    "advertisers": "advertiser",
    "publishers": "publisher",
    "links": "campaign",
    "assignments": "campaign",
    "adAccounts": "ad account",
    "sellPages": "sell page",
    "adCampaigns": "ad campaign",
    "adSets": "ad set",
    "ads": "ad",
    "targetingRules": "targeting rule",
    "frequencyCaps": "frequency cap",
}


def tell_status(directory: DataDirectory, say: Say) -> None:
    """Tell whether the sample is there, and what of it."""
    manifest = read_manifest(directory)
    match None if manifest is None else manifest.state:
        case State.THERE:
            assert manifest is not None
            say(f"The sample is there, since {manifest.loaded_at:%Y-%m-%d %H:%M} UTC: {_counts(manifest)}.")
            say("`adloom sample remove` takes it away.")
        case State.REMOVED:
            assert manifest is not None
            say(f"The sample is removed, but for what something else uses: {_counts(manifest)}.")
            say("`adloom sample remove` looks again, `adloom sample load` brings it back.")
        case State.LOADING | State.REMOVING:
            say("The sample is neither there nor gone: loading or removing it was broken off.")
            say("`adloom sample remove` and `adloom sample load` both end that.")
        case None:
            say("There is no sample. `adloom sample load` brings it.")


def remove(variables: Mapping[str, str], directory: DataDirectory, say: Say) -> None:
    """Take the sample away."""
    manifest = read_manifest(directory)
    if manifest is None:
        say("There is no sample to remove.")
        return
    removed = clear(_site(variables, directory), manifest, now=SystemClock().now())
    say(
        f"The sample is removed: {removed.count} things. What it was seen and clicked stays in the statistics."
    )
    for stays in removed.stays:
        say(f"  kept: {_sentence(stays)}")


def load(variables: Mapping[str, str], directory: DataDirectory, say: Say) -> None:
    """Bring the sample."""
    manifest = read_manifest(directory)
    if manifest is not None and manifest.state is State.THERE:
        say("The sample is there already. `adloom sample status` tells what it is.")
        return
    site = _site(variables, directory)
    manifest = fill(site, ids=SystemIds(), now=SystemClock().now())
    say(f"The sample is loaded: {_counts(manifest)}.")
    say(f"Open {site.delivery_url}/sample.")


def _site(variables: Mapping[str, str], directory: DataDirectory) -> SampleTarget:
    installation = directory.read_installation()
    if installation is None or directory.holder_pid() is None:
        raise InstallationError(
            f"No `adloom up` runs on {directory.path}. Start it, or name another --data-dir."
        )
    host = url_host(installation.host)
    return SampleTarget(
        directory=directory,
        control_url=f"http://{host}:{installation.control_port}",
        delivery_url=_public(variables) or f"http://{host}:{installation.delivery_port}",
        jwt_secret=signing_secret(variables, directory),
    )


def _public(variables: Mapping[str, str]) -> str | None:
    given = variables.get("ADLOOM_DELIVERY_URL", "").rstrip("/")
    return given if urlsplit(given).netloc else None


def _counts(manifest: Manifest) -> str:
    told = [_counted(len(ids), WORDS[kind]) for kind, ids in manifest.things.items() if kind in WORDS and ids]
    return ", ".join(told)


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _sentence(stays: Stays) -> str:
    user = stays.used_by
    thing = f"the {WORDS[stays.kind]} «{stays.name}»"
    if user.kind not in WORDS:
        return f"{thing}: {user.name}"
    return f"{thing}, because your {WORDS[user.kind]} «{user.name}» uses it"
