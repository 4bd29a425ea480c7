"""The description of the API: names for people, a server for each plane, and the rules that the server applies."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.app.control import openapi_document
from adloom.core.errors import ValidationFailedError
from adloom.resource.etag import IF_MATCH_PATTERN, parse_if_match
from scripts.clients import PROGRAMS, run_program
from tests.support.control import Client, ControlPlane

DOCUMENT = openapi_document()
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
OPERATIONS: dict[str, dict[str, Any]] = {
    f"{method.upper()} {path}": operation
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
}
ON_DELIVERY = {name: one for name, one in OPERATIONS.items() if one.get("security") == []}
LISTS = [
    path
    for path, item in DOCUMENT["paths"].items()
    if "{" not in path and "sort" in {one["name"] for one in item.get("get", {}).get("parameters", ())}
]


def query_of(path: str, name: str) -> dict[str, Any]:
    [found] = [one for one in DOCUMENT["paths"][path]["get"]["parameters"] if one["name"] == name]
    return found["schema"]


def test_schemas_have_names_for_people() -> None:
    assert {name for name in SCHEMAS if not re.fullmatch(r"[A-Z][A-Za-z]+", name)} == set()
    # A generator that leaves out what is between words must not find a name twice.
    assert len({name.lower() for name in SCHEMAS}) == len(SCHEMAS)
    assert {"CampaignAnswer", "CampaignList", "CategoryList", "SheetFormat"} <= set(SCHEMAS)


def test_every_operation_has_a_name_of_its_own_and_a_description() -> None:
    names = [one.get("operationId") for one in OPERATIONS.values()]

    assert all(one.get("description") and one.get("summary") for one in OPERATIONS.values())
    assert len(set(names)) == len(names)
    assert {"list_campaigns", "serve_placement", "create_ad_account", "create_account"} <= set(names)


def test_each_plane_has_its_server() -> None:
    assert [one["url"] for one in DOCUMENT["servers"]] == ["http://127.0.0.1:8090"]
    assert {one["servers"][0]["url"] for one in ON_DELIVERY.values()} == {"http://127.0.0.1:8080"}
    assert not any("servers" in one for name, one in OPERATIONS.items() if name not in ON_DELIVERY)


async def test_a_running_installation_names_its_own_servers(control: ControlPlane) -> None:
    async with control.client() as visitor:
        document = (await visitor.get("/openapi.json")).json()

    state = control.app.state
    assert document["servers"][0]["url"] == state.public_url
    assert document["paths"]["/tag.js"]["get"]["servers"][0]["url"] == state.delivery_url


def test_a_stream_has_no_schema_but_that_of_its_events() -> None:
    [described] = DOCUMENT["paths"]["/admin/spend/stream"]["get"]["responses"]["200"]["content"].values()

    assert "schema" not in described
    assert described["x-itemSchema"]["required"] == ["event", "data"]


def test_no_parameter_of_a_query_may_be_null() -> None:
    schemas = [
        parameter["schema"]
        for one in OPERATIONS.values()
        for parameter in one.get("parameters", ())
        if parameter["in"] == "query"
    ]

    assert len(schemas) > 300
    assert not any({"type": "null"} in schema.get("anyOf", ()) for schema in schemas)


@pytest.mark.parametrize("path", [path for path in LISTS if path.startswith("/admin/")])
async def test_a_list_takes_the_orders_that_are_described(path: str, admin: Client) -> None:
    schema = query_of(path, "sort")
    described = schema.get("enum") or [schema["const"]]

    answers = {order: (await admin.get(path, params={"sort": order})).status_code for order in described}

    assert set(answers.values()) == {200}, answers
    assert schema["default"] in described
    assert (await admin.get(path, params={"sort": "nothing"})).status_code == 400


def test_every_list_says_how_it_can_be_sorted() -> None:
    assert len(LISTS) > 15
    assert [path for path in LISTS if not query_of(path, "sort").keys() & {"enum", "const"}] == []


def test_a_name_that_must_not_be_blank_says_so() -> None:
    assert SCHEMAS["CampaignBody"]["properties"]["name"]["pattern"] == r"\S"
    assert SCHEMAS["PlacementBody"]["properties"]["label"]["pattern"] == r"\S"


@pytest.mark.parametrize(
    "name", ["PATCH /admin/campaigns/{campaign_id}", "POST /admin/campaigns/{campaign_id}/restore"]
)
def test_a_change_may_name_the_state_that_it_is_of(name: str) -> None:
    [header] = [one for one in OPERATIONS[name]["parameters"] if one["in"] == "header"]

    assert (header["name"], header["schema"]["pattern"]) == ("If-Match", IF_MATCH_PATTERN)


tags = st.one_of(
    st.just("*"), st.from_regex(r'\A ?(W/)?"[a-z0-9:Z*,-]{0,8}" ?\Z'), st.text('",*W/ a\t', max_size=8)
)


@given(st.lists(tags, min_size=1, max_size=3).map(",".join))
def test_an_if_match_is_accepted_exactly_if_it_is_as_described(header: str) -> None:
    try:
        parse_if_match(header)
    except ValidationFailedError:
        is_accepted = False
    else:
        is_accepted = True

    assert is_accepted == (re.fullmatch(IF_MATCH_PATTERN, header) is not None)


@pytest.mark.parametrize("program", PROGRAMS)
def test_generators_have_nothing_to_object_to(program: str, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: `just clients` brings it and runs it.")

    assert run_program(program, tmp_path) == ""
