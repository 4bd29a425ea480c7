"""Whether delivery can tell a reader's country, and which campaigns are shown to nobody because it cannot."""

from datetime import datetime
from typing import Final

import asyncpg

from adloom.ops.attention.model import has_country_source
from adloom.ops.attention.store import read_by_country
from adloom.ops.checks.finding import Finding, ok, warn
from adloom.resource.access import Scope
from adloom.runtime.postgres import Connection
from adloom.runtime.telemetry.heartbeat import HeartbeatReader

DELIVERY: Final = "delivery"
NAMED_MAX: Final = 5


async def knows_countries(reader: HeartbeatReader, *, now: datetime) -> bool:
    """Whether a delivery process that runs can tell countries; so it is said while none runs."""
    delivering = {one.id for one in await reader.list_processes(now=now) if one.kind == DELIVERY}
    settings = [one for name, one in (await reader.load_settings()).items() if name in delivering]
    return not settings or has_country_source(settings)


async def check_countries(connection: Connection, reader: HeartbeatReader, *, now: datetime) -> Finding:
    """Check whether campaigns want readers of countries that nobody can tell."""
    try:
        wanting = await read_by_country(connection, Scope(None), now=now)
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        return warn("Countries", "there are no campaigns yet", "run `adloom migrate`")
    if not wanting:
        return ok("Countries", "no running campaign waits for readers of a country")
    if await knows_countries(reader, now=now):
        return ok("Countries", "delivery can tell them")
    more = " …" if len(wanting) > NAMED_MAX else ""
    return warn(
        "Countries",
        "no reader's country is known, so nobody sees the campaigns with rules about countries: "
        f"{', '.join(one.name or str(one.id) for one in wanting[:NAMED_MAX])}{more}",
        "set ADLOOM_GEOIP_FILE, or ADLOOM_TRUSTED_PROXIES to a proxy that sends the country",
    )
