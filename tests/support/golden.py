"""Golden cases: one JSON file is one HTTP case, so that adding a case adds a file.

A case has a set-up, one request, and the expected answer. `$name` in any text is what a step of
the set-up has kept. Of the expected body only what is written is compared; `<uuid>`, `<time>` and
`<text>` stand for any value of that kind.
"""

import re
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import httpx
import msgspec

from adloom.core.caller import Role
from tests.support.builders import UNKNOWN_ID
from tests.support.control import ControlPlane
from tests.support.described import list_deviations

REFERENCE = re.compile(r"\$(\w+)")


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"caller": "as"}):
    """One request; `as` is a role, with the name of an account behind a colon, or `nobody`."""

    caller: str = "admin"
    do: str
    query: dict[str, str] = {}
    headers: dict[str, str] = {}
    body: Any = msgspec.UNSET
    raw: str | None = None
    keep: dict[str, str] = {}


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The expected answer."""

    status: int
    headers: dict[str, str] = {}
    body: Any = msgspec.UNSET


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A set-up, a request, an answer."""

    setup: list[Step] = []
    request: Step
    expect: Expected


def read_case(path: Path) -> Case:
    return msgspec.json.decode(path.read_bytes(), type=Case)


async def run_case(case: Case, control: ControlPlane) -> None:
    kept = {"nobody": str(UNKNOWN_ID)}
    for step in case.setup:
        answer = await ask(step, kept, control)
        assert answer.is_success, f"{step.do}: {answer.text}"
        kept |= {name: value_at(answer.json(), path) for name, path in step.keep.items()}
    answer = await ask(case.request, kept, control)
    assert answer.status_code == case.expect.status, answer.text
    for name, value in case.expect.headers.items():
        assert matches(answer.headers.get(name), value), f"{name}: {answer.headers.get(name)!r}"
    if case.expect.body is not msgspec.UNSET:
        compare(answer.json(), filled(case.expect.body, kept), "body")


async def ask(step: Step, kept: dict[str, str], control: ControlPlane) -> httpx.Response:
    method, _, path = filled(step.do, kept).partition(" ")
    headers = {**authorization(step.caller, control), **filled(step.headers, kept)}
    content = step.raw
    if step.body is not msgspec.UNSET:
        content = msgspec.json.encode(filled(step.body, kept)).decode()
    if content is not None:
        headers.setdefault("content-type", "application/json")
    async with control.client() as client:
        answer = await client.request(
            method, path, params=filled(step.query, kept), headers=headers, content=content
        )
    assert list_deviations(answer) == [], step.do
    return answer


def authorization(caller: str, control: ControlPlane) -> dict[str, str]:
    if caller == "nobody":
        return {}
    role, _, account = caller.partition(":")
    account_id = account_named(account) if account else None
    return {"Authorization": f"Bearer {control.token(Role(role), account_id)}"}


def account_named(name: str) -> UUID:
    return uuid5(UNKNOWN_ID, name)


def filled(value: Any, kept: dict[str, str]) -> Any:
    match value:
        case str():
            return REFERENCE.sub(lambda found: kept.get(found[1], found[0]), value)
        case dict():
            return {key: filled(inner, kept) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType] - JSON
        case list():
            return [filled(inner, kept) for inner in value]  # pyright: ignore[reportUnknownVariableType] - JSON
        case _:
            return value


def value_at(body: Any, path: str) -> str:
    for name in path.split("."):
        body = body[int(name)] if name.isdecimal() else body[name]
    return str(body)


def compare(found: Any, expected: Any, where: str) -> None:
    match expected:
        case dict():
            for key, inner in expected.items():  # pyright: ignore[reportUnknownVariableType] - JSON
                assert key in found, f"{where} has no {key}: {found}"
                compare(found[key], inner, f"{where}.{key}")
        case list():
            assert len(found) == len(expected), f"{where}: {found}"  # pyright: ignore[reportUnknownArgumentType] - JSON
            for place, inner in enumerate(expected):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
                compare(found[place], inner, f"{where}.{place}")
        case _:
            assert matches(found, expected), f"{where}: {found!r} is not {expected!r}"


def matches(found: object, expected: object) -> bool:
    match expected:
        case "<uuid>":
            return UUID(str(found)).version == 7
        case "<time>":
            return datetime.fromisoformat(str(found)).tzinfo is not None
        case "<text>":
            return isinstance(found, str) and bool(found)
        case _:
            return type(found) is type(expected) and found == expected
