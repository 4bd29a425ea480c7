"""Errors of the control plane become problem details, even unexpected ones."""

import asyncpg
import httpx
import pytest
from fastapi import FastAPI

from adloom.runtime.http.api.exception_handlers import install_problem_handlers
from adloom.runtime.postgres import Pool


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("SELECT $1::text", "a\0b"),
        ("SELECT $1::text::jsonb -> 'a'", '{"a": "\\u0000"}'),
        ("SELECT $1::text", "a\ud800b"),
    ],
    ids=["NUL", "NUL in JSON", "half a surrogate"],
)
async def test_a_text_that_the_database_cannot_store_gets_400(query: str, value: str, pool: Pool) -> None:
    async with asking(pool, query, value) as client:
        answer = await client.get("/")

    assert (answer.status_code, answer.json()["errorCode"]) == (400, "BAD_REQUEST")


async def test_other_data_errors_of_the_database_are_not_the_clients(pool: Pool) -> None:
    async with asking(pool, "SELECT $1::text::integer", "many") as client:
        with pytest.raises(asyncpg.DataError):
            await client.get("/")


def asking(pool: Pool, query: str, value: str) -> httpx.AsyncClient:
    app = FastAPI()
    install_problem_handlers(app)

    @app.get("/")
    async def read() -> str:  # pyright: ignore[reportUnusedFunction] - the app has it
        return await pool.fetchval(query, value)

    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://control.test")
