"""The description of the API: names for people, a server for each plane, and the rules that the server applies."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from adloom.app.control import build_openapi_document
from adloom.core.caller import Role
from adloom.core.errors import ValidationFailedError
from adloom.resource.etag import IF_MATCH_PATTERN, parse_if_match
from adloom.runtime.http.api.shapes import Body
from scripts.clients import PROGRAMS, run_program
from tests.support.control import Client, ControlPlane, error_fields, problem

Json = dict[str, Any]


def schemas() -> Json:
    return build_openapi_document()["components"]["schemas"]


def operations() -> dict[str, Json]:
    return {
        f"{method.upper()} {path}": operation
        for path, item in build_openapi_document()["paths"].items()
        for method, operation in item.items()
    }


def on_delivery() -> dict[str, Json]:
    return {name: one for name, one in operations().items() if one.get("security") == []}


def lists() -> list[str]:
    return [
        path
        for path, item in build_openapi_document()["paths"].items()
        if "{" not in path and "sort" in {one["name"] for one in item.get("get", {}).get("parameters", ())}
    ]


def query_of(path: str, name: str) -> Json:
    [found] = [
        one for one in build_openapi_document()["paths"][path]["get"]["parameters"] if one["name"] == name
    ]
    return found["schema"]


def test_schemas_have_names_for_people() -> None:
    assert {name for name in schemas() if not re.fullmatch(r"[A-Z][A-Za-z]+", name)} == set()
    # A generator that leaves out what is between words must not find a name twice.
    assert len({name.lower() for name in schemas()}) == len(schemas())
    assert {"CampaignAnswer", "CampaignList", "CategoryList", "SheetFormat"} <= set(schemas())


def test_every_operation_has_a_name_of_its_own_and_a_description() -> None:
    names = [one.get("operationId") for one in operations().values()]

    assert all(one.get("description") and one.get("summary") for one in operations().values())
    assert len(set(names)) == len(names)
    assert {"list_campaigns", "serve_placement", "create_ad_account", "create_account"} <= set(names)


def test_each_plane_has_its_server() -> None:
    assert [one["url"] for one in build_openapi_document()["servers"]] == ["http://127.0.0.1:8090"]
    assert {one["servers"][0]["url"] for one in on_delivery().values()} == {"http://127.0.0.1:8080"}
    assert not any("servers" in one for name, one in operations().items() if name not in on_delivery())


async def test_a_running_installation_names_its_own_servers(control: ControlPlane) -> None:
    async with control.client() as visitor:
        document = (await visitor.get("/openapi.json")).json()

    state = control.app.state
    assert document["servers"][0]["url"] == state.public_url
    assert document["paths"]["/tag.js"]["get"]["servers"][0]["url"] == state.delivery_url


def test_a_stream_has_no_schema_but_that_of_its_events() -> None:
    [described] = build_openapi_document()["paths"]["/admin/spend/stream"]["get"]["responses"]["200"][
        "content"
    ].values()

    assert "schema" not in described
    assert described["x-itemSchema"]["required"] == ["event", "data"]


def test_no_parameter_of_a_query_may_be_null() -> None:
    schemas = [
        parameter["schema"]
        for one in operations().values()
        for parameter in one.get("parameters", ())
        if parameter["in"] == "query"
    ]

    assert len(schemas) > 300
    assert not any({"type": "null"} in schema.get("anyOf", ()) for schema in schemas)


async def test_a_list_takes_the_orders_that_are_described(admin: Client) -> None:
    for path in [path for path in lists() if path.startswith("/admin/")]:
        schema = query_of(path, "sort")
        described = schema.get("enum") or [schema["const"]]

        answers = {order: (await admin.get(path, params={"sort": order})).status_code for order in described}

        assert set(answers.values()) == {200}, (path, answers)
        assert schema["default"] in described, path
        assert (await admin.get(path, params={"sort": "nothing"})).status_code == 400, path


def test_every_list_says_how_it_can_be_sorted() -> None:
    assert len(lists()) > 15
    assert [path for path in lists() if not query_of(path, "sort").keys() & {"enum", "const"}] == []


def test_money_in_hundredths_is_a_whole_number() -> None:
    fields = {
        f"{name}.{field}": shape.get("anyOf", [shape])[0]
        for name, schema in schemas().items()
        for field, shape in schema.get("properties", {}).items()
        if field.endswith("Paisa")
    }

    assert len(fields) > 50
    assert {name: shape for name, shape in fields.items() if shape.get("type") != "integer"} == {}


def test_the_value_of_conversions_is_a_number() -> None:
    kinds = schemas()["StatsTotals"]["properties"]["conversionValue"]["anyOf"]

    assert [kind["type"] for kind in kinds] == ["number", "null"]


def test_what_is_refused_of_a_body_or_a_parameter_is_described() -> None:
    missing = {
        (name, status)
        for name, one in operations().items()
        for status in ("400", "413")
        if one.get("security") != []
        and ("requestBody" in one or (status == "400" and any(map(can_be_wrong, one.get("parameters", ())))))
        and status not in one["responses"]
    }

    assert missing == set()


def test_every_operation_that_needs_a_token_may_be_refused_for_now() -> None:
    guarded = {name: one for name, one in operations().items() if one.get("security")}

    assert len(guarded) > 150
    assert {
        name for name, one in guarded.items() if not {"401", "429", "503"} <= one["responses"].keys()
    } == set()


def can_be_wrong(parameter: Json) -> bool:
    return parameter["in"] == "query" or parameter["schema"].get("format") == "uuid"


def test_a_name_that_must_not_be_blank_says_so() -> None:
    assert schemas()["CampaignBody"]["properties"]["name"]["pattern"] == r"\S"
    assert schemas()["PlacementBody"]["properties"]["label"]["pattern"] == r"\S"


@pytest.mark.parametrize(
    "name", ["PATCH /admin/campaigns/{campaign_id}", "POST /admin/campaigns/{campaign_id}/restore"]
)
def test_a_change_may_name_the_state_that_it_is_of(name: str) -> None:
    [header] = [one for one in operations()[name]["parameters"] if one["in"] == "header"]

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


async def test_the_example_of_an_import_can_be_imported(admin: Client) -> None:
    described = build_openapi_document()["paths"]["/admin/import"]["post"]["requestBody"]["content"][
        "application/json"
    ]

    answer = await admin.post("/admin/import", json=described["example"])

    assert described["schema"] == {"$ref": "#/components/schemas/CatalogDocument"}
    assert (answer.status_code, answer.json()["created"]) == (200, 6)


def test_the_file_of_an_upload_is_described() -> None:
    upload = build_openapi_document()["paths"]["/admin/assets"]["post"]

    assert list(upload["requestBody"]["content"]) == ["application/octet-stream"]
    assert upload["security"]


def list_bodies(node: object) -> set[str]:
    """Name the schemas that a part of the document refers to, and those that they refer to."""
    if isinstance(node, list):
        return {name for one in cast("list[object]", node) for name in list_bodies(one)}
    if not isinstance(node, dict):
        return set()
    names: set[str] = set()
    for key, value in cast("dict[str, Any]", node).items():
        if key == "$ref":
            name = value.rpartition("/")[2]
            names |= {name} | list_bodies(schemas()[name])
        else:
            names |= list_bodies(value)
    return names


def list_models(base: type[Body]) -> list[type[Body]]:
    return [base, *(one for sub in base.__subclasses__() for one in list_models(sub))]


def list_integers() -> Iterator[tuple[FieldInfo, Json]]:
    """Find the fields of bodies that are integers, and how each is described."""
    bodies = list_bodies([one.get("requestBody") for one in operations().values()])
    for model in (one for one in list_models(Body) if one.__name__ in bodies):
        for field in model.model_fields.values():
            schema = schemas()[model.__name__]["properties"].get(field.alias or "", {})
            for wanted in [schema, *schema.get("anyOf", ())]:
                if wanted.get("type") == "integer" and "const" not in wanted:
                    yield field, wanted


def test_a_whole_number_may_be_written_with_a_point() -> None:
    integers = list(list_integers())

    assert len(integers) > 40
    for field, wanted in integers:
        annotation: Any = Annotated[field.annotation, Field(), *field.metadata]  # pyright: ignore[reportInvalidTypeForm]  made at run time
        check = TypeAdapter[Any](annotation).validate_python
        least = wanted["minimum"]

        assert (check(float(least)), type(check(float(least)))) == (least, int), field
        for refused in (least + 0.5, float(wanted["maximum"]) + 1, least == 0):
            with pytest.raises(ValidationError):
                check(refused)


async def test_a_number_that_is_not_whole_is_refused_by_name(admin: Client) -> None:
    placement = {"slug": "with-a-point", "label": "Hero", "layoutType": "full_static"}
    rule = {"campaignId": (await admin.make_campaign())["id"], "ruleType": "hour_of_day", "operator": "in"}

    made = await admin.made("/admin/placements", {**placement, "maxBanners": 3.0})
    hours = await admin.made("/admin/targeting-rules", {**rule, "value": [9.0, 17]})
    [entry] = problem(
        await admin.post("/admin/placements", json={**placement, "slug": "half", "maxBanners": 1.5}),
        400,
        "VALIDATION_FAILED",
    )["errors"]
    half_an_hour = await admin.post("/admin/targeting-rules", json={**rule, "value": [9.5]})

    assert made["maxBanners"] == 3
    assert hours["value"] == [9, 17]
    assert (entry["field"], "whole number" in entry["message"]) == ("maxBanners", True)
    assert error_fields(problem(half_an_hour, 400, "VALIDATION_FAILED")) == {"value"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_generators_have_nothing_to_object_to(program: str, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: `just clients` brings it and runs it.")

    assert run_program(program, tmp_path) == ""


def takes_a_seller(operation: Json) -> bool:
    return "sellerId" in {one["name"] for one in operation.get("parameters", ())}


async def test_the_seller_is_named_as_it_is_described(control: ControlPlane, admin: Client) -> None:
    described = {name: one for name, one in operations().items() if " /api/ads-manager/" in name}
    own, another = [(await admin.make_advertiser(name=name))["id"] for name in ("Meadow", "Forest")]
    days = {"dateFrom": "2026-11-01", "dateTo": "2026-11-02"}
    paths = [name.split()[1] for name in described if name.startswith("GET") and "{" not in name]
    asked = {path: days if "/reports/" in path else {} for path in paths}

    async with control.acting_as(Role.ADVERTISER, UUID(own)) as advertiser:
        found = {
            path: [
                (await admin.get(path, params=query)).status_code,
                (await admin.get(path, params={**query, "sellerId": own})).status_code,
                (await advertiser.get(path, params=query)).status_code,
                (await advertiser.get(path, params={**query, "sellerId": another})).status_code,
            ]
            for path, query in asked.items()
        }
        refused = await admin.post("/api/ads-manager/accounts", json={"name": "Meta"})
        made = await admin.post("/api/ads-manager/accounts", json={"name": "Meta", "sellerId": own})
        stolen = await advertiser.post(
            "/api/ads-manager/accounts", json={"name": "Theirs", "sellerId": another}
        )

    assert [name for name, one in described.items() if not takes_a_seller(one)] == []
    assert {path: codes for path, codes in found.items() if codes != [400, 200, 200, 404]} == {}
    assert len(found) > 8
    assert error_fields(problem(refused, 400, "VALIDATION_FAILED")) == {"sellerId"}
    assert made.status_code == 201
    problem(stolen, 404, "SELLER_NOT_FOUND")
    bodies = [name for name, one in schemas().items() if "sellerId" in one.get("properties", {})]
    for name in bodies:
        field = schemas()[name]["properties"]["sellerId"]
        assert name.endswith("Answer") or "required of an admin" in field["description"], name
