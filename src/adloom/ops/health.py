"""Health of the control process over HTTP; it answers at once, whatever is away or frozen."""

import asyncio
from typing import Final, NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from adloom.resource.changes import read_version
from adloom.runtime.http.api.dependencies import Responses
from adloom.runtime.http.background_check import BackgroundCheck, find_oldest_age, wait_until_known
from adloom.runtime.postgres import POSTGRES_AWAY, Pool
from adloom.runtime.valkey import VALKEY_AWAY, Valkey, is_reachable

CHECK_SECONDS_MAX: Final = 5.0
UNAVAILABLE: Final[Responses] = {503: {"description": "A part that is needed does not answer."}}

router = APIRouter(prefix="/health", tags=["health"])


@router.head("/live", include_in_schema=False)
@router.get("/live")
async def live() -> dict[str, str]:
    """Answer that the process runs."""
    return {"status": "ok"}


@router.head("/ready", include_in_schema=False)
@router.head("", include_in_schema=False)
@router.get("/ready", responses=UNAVAILABLE)
@router.get("", responses=UNAVAILABLE)
async def ready(request: Request) -> Response:
    """Answer whether the services that the control plane needs were there at the last check, and how old that is.

    Valkey is reported but not required: without it changes reach the indexes a second later.
    """
    checks: ControlChecks = request.app.state.checks
    await wait_until_known(*checks)
    version = checks.catalog.result
    status = "ok" if version is not None else "unavailable"
    report = {
        "postgres": status,
        "valkey": "ok" if checks.valkey.result else "unavailable",
        "index": {"status": status, "version": version},
    }
    age = find_oldest_age(checks.catalog, checks.valkey)
    return JSONResponse(
        {"status": status, "checks": report, "ageSeconds": age}, 200 if version is not None else 503
    )


class ControlChecks(NamedTuple):
    """What is known of the servers: the version of the catalog, and whether Valkey answers."""

    catalog: BackgroundCheck[int]
    valkey: BackgroundCheck[bool]


def make_checks(pool: Pool, valkey: Valkey) -> ControlChecks:
    async def check_catalog() -> int | None:
        async with asyncio.timeout(CHECK_SECONDS_MAX), pool.acquire() as connection:
            return await read_version(connection)

    return ControlChecks(
        BackgroundCheck(check_catalog, away=POSTGRES_AWAY),
        BackgroundCheck(lambda: is_reachable(valkey), away=VALKEY_AWAY),
    )
