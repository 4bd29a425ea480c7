"""Errors of the control plane become problem details, even unexpected ones."""

from collections.abc import Sequence
from datetime import date, time
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

import asyncpg
import httpx
import pytest
from fastapi import FastAPI
from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, ValidationError

from adloom.core.errors import FieldProblem
from adloom.runtime.http.api.exception_handlers import install_problem_handlers, list_field_problems
from adloom.runtime.postgres import Pool
from tests.support.for_each import for_each


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


class Part(BaseModel):
    """A field that is an object."""

    hours: Annotated[tuple[int, ...], Field(min_length=2)] = (1, 2)


class Body(BaseModel):
    """A field of each kind that a client can get wrong."""

    id: UUID | None = None
    count: Annotated[int, Field(ge=1, le=5)] = 1
    price: Annotated[Decimal, Field(gt=0, decimal_places=2)] = Decimal(1)
    share: Annotated[float, Field(lt=1, allow_inf_nan=False)] = 0.5
    on: bool = True
    name: Annotated[str, Field(min_length=1, max_length=3, pattern="^[a-z]*$")] = "a"
    label: Annotated[Annotated[str, AfterValidator(str.strip)], Field(min_length=1, max_length=3)] = "a"
    tags: Annotated[list[str], Field(min_length=1, max_length=2)] = ["a"]
    zones: tuple[str, ...] = ()
    days: frozenset[int] = frozenset()
    pages: Sequence[str] = ()
    sizes: dict[str, int] = {}
    part: Part = Part()
    mode: Literal["smooth", "fast"] = "smooth"
    at: AwareDatetime | None = None
    day: date | None = None
    opens: time | None = None


@for_each(
    ("field", "value", "said"),
    [
        ("id", "home", "must be an id such as 01a1ee54-30c5-72fb-ad0c-9a66750e8905"),
        ("count", 0, "must be 1 or more"),
        ("count", 6, "must be 5 or less"),
        ("count", "12,50", "must be a whole number"),
        ("count", 1.5, "must be a whole number"),
        ("count", "9" * 5_000, "has too many digits"),
        ("price", 0, "must be more than 0"),
        ("price", "1.234", "must have at most 2 decimals"),
        ("price", "12,50", "must be a number"),
        ("share", 1, "must be less than 1.0"),
        ("share", float("nan"), "must be a number"),
        ("on", "maybe", "must be true or false"),
        ("name", 5, "must be text"),
        ("name", "", "must have 1 or more characters"),
        ("name", "{long}", "must have at most 3 characters"),
        ("name", "A", "must match the pattern ^[a-z]*$"),
        ("label", "", "must have 1 or more characters"),
        ("label", "long", "must have at most 3 characters"),
        ("tags", "a", "must be a list"),
        ("tags", [], "must have 1 or more items"),
        ("tags", ["a", "b", "c"], "must have at most 2 items"),
        ("zones", "a", "must be a list"),
        ("days", "a", "must be a list"),
        ("pages", 5, "must be a list"),
        ("pages", "a", "must be a list"),
        ("sizes", [], "must be an object"),
        ("part", None, "must be an object"),
        ("mode", "{slow}", "must be 'smooth' or 'fast'"),
        ("at", "tomorrow", "must be a date and a time such as 2026-11-18T12:00:00Z"),
        ("at", "2026-11-18T12:00:00", "must have a time zone, such as 2026-11-18T12:00:00Z"),
        ("day", "2026-02-30", "must be a date such as 2026-11-18"),
        ("opens", "late", "must be a time of day such as 09:30"),
    ],
)
def test_a_wrong_value_is_refused_in_plain_words(field: str, value: object, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Body.model_validate({field: value})

    assert list_field_problems(refused.value.errors()) == (FieldProblem(field, said),)  # pyright: ignore[reportArgumentType]  dicts


def test_a_list_with_a_wrong_item_is_not_too_short() -> None:
    with pytest.raises(ValidationError) as refused:
        Part.model_validate({"hours": [1, "late"]})

    problems = list_field_problems(refused.value.errors())  # pyright: ignore[reportArgumentType]  dicts
    assert problems == (FieldProblem("hours.1", "must be a whole number"),)


def asking(pool: Pool, query: str, value: str) -> httpx.AsyncClient:
    app = FastAPI()
    install_problem_handlers(app)

    @app.get("/")
    async def read() -> str:  # pyright: ignore[reportUnusedFunction] - the app has it
        return await pool.fetchval(query, value)

    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://control.test")
