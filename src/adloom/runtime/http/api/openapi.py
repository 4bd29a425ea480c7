"""The description of the API: what the framework writes, with our errors instead of its own."""

from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from adloom.runtime.http.problem import PROBLEM_CONTENT_TYPE

Json = dict[str, Any]
Responses = dict[int | str, dict[str, Any]]

PROBLEM_SCHEMA: Final[Json] = {
    "type": "object",
    "description": "Problem details (RFC 9457).",
    "required": ["type", "title", "status", "detail", "message", "errorCode"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "message": {"type": "string", "description": "Repeats `detail`."},
        "errorCode": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}
SECURITY_SCHEMES: Final[Json] = {
    "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
NEEDS_A_TOKEN: Final[Json] = {"security": [{name: []} for name in SECURITY_SCHEMES]}
_FRAMEWORKS_OWN: Final = ("HTTPValidationError", "ValidationError")


def problem_answer_description(status: int) -> Json:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {PROBLEM_CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def problems(*statuses: int) -> Responses:
    """Describe the errors of a router, for its `responses`."""
    return {status: problem_answer_description(status) for status in statuses}


def build_document(app: FastAPI) -> Json:
    document: Json = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas: Json = document.setdefault("components", {}).setdefault("schemas", {})
    for name in _FRAMEWORKS_OWN:
        schemas.pop(name, None)
    schemas["Problem"] = PROBLEM_SCHEMA
    document["components"]["securitySchemes"] = SECURITY_SCHEMES
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
    return document
