"""The part of JSON Schema that the topics' schemas use; an unknown keyword is refused."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

Schema = Mapping[str, Any]

TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "null": lambda value: value is None,
}
FORMATS: Mapping[str, Callable[[str], bool]] = {
    "uuid": lambda text: str(UUID(text)) == text,
    "date-time": lambda text: text.endswith("Z") and datetime.fromisoformat(text).utcoffset() == timedelta(),
}
# For values that are not null.
RULES: Mapping[str, Callable[[Any, Any], bool]] = {
    "format": lambda value, name: follows(FORMATS[name], value),
    "pattern": lambda value, pattern: re.search(pattern, value) is not None,
    "minLength": lambda value, least: len(value) >= least,
    "maxLength": lambda value, most: len(value) <= most,
    "minimum": lambda value, least: value >= least,
    "maximum": lambda value, most: value <= most,
    "multipleOf": lambda value, step: Decimal(str(value)) % Decimal(str(step)) == 0,
    "uniqueItems": lambda value, _: len(value) == len(set(value)),
    "additionalProperties": lambda _, allowed: allowed is True,
}
STRUCTURE = {"type", "required", "properties", "items"}
ANNOTATIONS = {"$schema", "$id", "$comment", "title", "description"}


def problems(value: Any, schema: Schema, at: str = "it") -> Iterator[str]:
    """List how a value violates a schema."""
    assert schema.keys() <= RULES.keys() | STRUCTURE | ANNOTATIONS
    allowed_types: Any = schema["type"]
    names: list[str] = [allowed_types] if isinstance(allowed_types, str) else allowed_types
    if not any(TYPES[name](value) for name in names):
        yield f"{at} is {value!r}, not {' or '.join(names)}"
        return
    if value is None:
        return
    for rule, bound in schema.items():
        if rule in RULES and not RULES[rule](value, bound):
            yield f"{at} is {value!r}, against {rule} {bound!r}"
    yield from (f"{at}.{name} is missing" for name in schema.get("required", ()) if name not in value)
    for name, inner in schema.get("properties", {}).items():
        if name in value:
            yield from problems(value[name], inner, f"{at}.{name}")
    if "items" in schema:
        for number, item in enumerate(value):
            yield from problems(item, schema["items"], f"{at}[{number}]")


def follows(form: Callable[[str], bool], text: str) -> bool:
    try:
        return form(text)
    except ValueError:
        return False
