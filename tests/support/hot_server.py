"""Fast routes on a real socket, with a client for them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import httpx
import uvicorn
from uvicorn.server import ServerState

from adloom.runtime.http.fast.fast_routes import FastRoute, FastRoutes
from adloom.runtime.http.fast.protocol import make_protocol
from adloom.runtime.http.plain import PlainApp


@asynccontextmanager
async def serving(routes: Sequence[FastRoute]) -> AsyncGenerator[httpx.AsyncClient]:
    protocol = make_protocol(FastRoutes(routes))
    config = uvicorn.Config(PlainApp({}), http=protocol, lifespan="off", log_config=None)
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: protocol(config=config, server_state=state, app_state={}),
        "127.0.0.1",
        0,
    )
    port: int = server.sockets[0].getsockname()[1]
    async with server, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        yield client
