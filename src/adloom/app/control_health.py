"""How the control plane is doing: it works while it can reach the database."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from adloom.resource.changes import read_version
from adloom.runtime import postgres, valkey
from adloom.runtime.http.api.dependencies import Responses

READY_SECONDS_MAX = 5.0

router = APIRouter(prefix="/health", tags=["health"])

_UNAVAILABLE: Responses = {503: {"description": "A part that is needed does not answer."}}


@router.get("/live")
async def live() -> dict[str, str]:
    """Answer that the process runs."""
    return {"status": "ok"}


@router.get("/ready", responses=_UNAVAILABLE)
@router.get("", responses=_UNAVAILABLE)
async def ready(request: Request) -> Response:
    """Check the services that the control plane needs.

    Valkey is reported but not required: without it changes reach the indexes a second later.
    """
    pool: postgres.Pool = request.app.state.pool
    async with asyncio.TaskGroup() as group:
        version = group.create_task(_catalog_version(pool))
        has_valkey = group.create_task(valkey.is_reachable(request.app.state.valkey))
    is_well = version.result() is not None
    body: dict[str, Any] = {
        "status": _word(is_well=is_well),
        "checks": {
            "postgres": _word(is_well=is_well),
            "valkey": _word(is_well=has_valkey.result()),
            "index": {"status": _word(is_well=is_well), "version": version.result()},
        },
    }
    return JSONResponse(body, 200 if is_well else 503)


async def _catalog_version(pool: postgres.Pool) -> int | None:
    try:
        async with asyncio.timeout(READY_SECONDS_MAX), pool.acquire() as connection:
            return await read_version(connection)
    except postgres.POSTGRES_AWAY:
        return None


def _word(*, is_well: bool) -> str:
    return "ok" if is_well else "unavailable"
