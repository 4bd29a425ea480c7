"""Makes the API's description fit for people and for generators of clients: names, tags, servers."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from adloom.runtime.http.api.event_stream import EVENT_STREAM

Json = dict[str, Any]

DESCRIPTION: Final = (
    "Adloom has two planes. **Control** is the admin API: it needs an access token or an API key. **Delivery** is "
    "public: pages ask it for ads and report what was seen. Each operation names its server."
)
CONTROL: Final = "Control: the admin API."
DELIVERY: Final = "Delivery: public, without a token."
CONTROL_URL: Final = "http://127.0.0.1:8090"
DELIVERY_URL: Final = "http://127.0.0.1:8080"
REF: Final = "#/components/schemas/"

VALUES: Final = frozenset({"const", "default", "enum", "example", "examples"})

_PAGE_OF: Final = re.compile(r"Page_(\w+?)(?:Answer)?_")


def tidy_document(document: Json, routes: Iterable[BaseRoute]) -> Json:
    """Return a document with names for people; `routes` are those of control."""
    schemas: Json = document["components"]["schemas"]
    names = {name: _PAGE_OF.sub(r"\1List", name) for name in schemas}
    assert len(set(names.values())) == len(names), "each schema needs a name of its own"
    assert all(name.isalnum() for name in names.values()), (
        "two classes of one name get the names of their modules"
    )
    _name_operations(document, routes)
    paths = cast("Json", _rewrite(document["paths"], names))
    renamed = {names[name]: _rewrite(schema, names) for name, schema in schemas.items()}
    operations = [one for item in paths.values() for one in item.values()]
    for operation in operations:
        # The framework calls a stream a text, and programs take that for the schema of each event.
        operation["responses"].get("200", {}).get("content", {}).get(EVENT_STREAM, {}).pop("schema", None)
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "query":
                parameter["schema"] = _remove_null(parameter["schema"])
    tidied = {
        **document,
        "info": {**document["info"], "description": DESCRIPTION, "contact": {"name": "Adloom"}},
        "tags": [{"name": tag} for tag in sorted({tag for one in operations for tag in one["tags"]})],
        "paths": paths,
        "components": {**document["components"], "schemas": renamed},
    }
    return name_servers(tidied, CONTROL_URL, DELIVERY_URL)


def name_servers(document: Json, control_url: str, delivery_url: str) -> Json:
    """Return a document that says where its planes are; routes of delivery are those without security."""
    delivery = [{"url": delivery_url, "description": DELIVERY}]
    paths = {
        path: {
            method: {**one, "servers": delivery} if _is_of_delivery(one) else one
            for method, one in item.items()
        }
        for path, item in document["paths"].items()
    }
    return {**document, "servers": [{"url": control_url, "description": CONTROL}], "paths": paths}


def _is_of_delivery(operation: Json) -> bool:
    return operation.get("security") == [] and operation["tags"] == ["delivery"]


def _name_operations(document: Json, routes: Iterable[BaseRoute]) -> None:
    """Call operations as their functions are called, where that is unique."""
    described = [route for route in routes if isinstance(route, APIRoute) and route.include_in_schema]
    count = Counter(route.name for route in described)
    for route in described:
        for method in route.methods or ():
            if count[route.name] == 1:
                document["paths"][route.path_format][method.lower()]["operationId"] = route.name


def _rewrite(node: object, names: Mapping[str, str], *, has_names: bool = False) -> object:
    """Copy a part of a document without the titles that the framework makes of names, and with schemas renamed.

    `has_names`: the keys of this object are names of properties, and `title` may be one of them.
    """
    if isinstance(node, list):
        return [_rewrite(one, names) for one in cast("list[object]", node)]
    if not isinstance(node, dict):
        return node
    copied: Json = {}
    for key, value in cast("Json", node).items():
        if has_names or key not in {*VALUES, "$ref", "title"}:
            copied[key] = _rewrite(value, names, has_names=not has_names and key == "properties")
        elif key == "$ref":
            copied[key] = f"{REF}{names[value.removeprefix(REF)]}"
        elif key in VALUES:
            copied[key] = value
    return copied


def _remove_null(schema: Json) -> Json:
    """Leave out null, which a query cannot have."""
    kinds = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(kinds) == len(schema.get("anyOf", ())):
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    if len(kinds) > 1:
        return {"anyOf": kinds, **rest}
    # A reference has nothing beside it; the description is the parameter's too.
    return kinds[0] if "$ref" in kinds[0] else {**kinds[0], **rest}
