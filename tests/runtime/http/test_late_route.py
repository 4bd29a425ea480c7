"""Routes that the framework reads when they are first used."""

import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Request, Response

from adloom.runtime.http.api.routes import LateRoute


async def read_thing(thing_id: int) -> dict[str, int]:
    return {"id": thing_id}


async def delete_thing(thing_id: int) -> None:
    del thing_id


async def test_the_framework_reads_a_route_with_its_first_request_and_once() -> None:
    read: list[str] = []

    class Counted(LateRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            read.append(self.name)
            return super().get_route_handler()

    router = APIRouter(prefix="/things", route_class=Counted)
    router.add_api_route("/{thing_id}", read_thing)
    router.add_api_route("/{thing_id}", delete_thing, methods=["DELETE"], status_code=204)
    app = FastAPI(openapi_url=None)
    app.router.routes.extend(router.routes)
    assert read == []

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://control") as client:
        assert (await client.get("/others/7")).status_code == 404
        assert (await client.post("/things/7")).status_code == 405
        assert read == []
        assert (await client.get("/things/7")).json() == {"id": 7}
        assert (await client.get("/things/seven")).status_code == 422
        assert read == ["read_thing"]
        assert (await client.delete("/things/7")).status_code == 204

    assert read == ["read_thing", "delete_thing"]


def test_a_late_route_has_no_other_attributes_than_any_route() -> None:
    route = LateRoute("/things/{thing_id}", read_thing, tags=["things"])

    assert route.tags == ["things"]
    with pytest.raises(AttributeError, match="colour"):
        _ = route.colour


def test_a_route_is_read_once_whoever_asks_for_it_meanwhile() -> None:
    read: list[str] = []

    class Slow(LateRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            read.append(self.name)
            time.sleep(0.05)
            return super().get_route_handler()

    route = Slow("/things/{thing_id}", read_thing)
    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(getattr, route, "app") for _ in range(4)]

    assert len({id(one.result()) for one in found}) == 1
    assert read == ["read_thing"]
