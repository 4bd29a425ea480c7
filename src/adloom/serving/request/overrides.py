"""What a request states about its visitor, for servers that ask on a visitor's behalf.

The names are the same in the query and in the `context` of a body. An empty text means unknown; without a
name the headers decide, which may be the server's own.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias
from urllib.parse import parse_qsl
from uuid import UUID

import msgspec

from adloom.core.errors import FieldProblem, ValidationFailedError
from adloom.targeting.context import Context
from adloom.targeting.rules import show_value
from adloom.targeting.values import (
    DEVICES,
    SEGMENT_CHARACTERS_MAX,
    UNKNOWN_COUNTRIES,
    extract_host,
    normalize_country,
    normalize_device,
    normalize_domain,
    normalize_language,
    normalize_segment,
)

BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}

OverrideValue: TypeAlias = str | bool | None


class Overrides(msgspec.Struct, frozen=True):
    """The fields of a context that a request states, and the user that it asks for."""

    fields: Mapping[str, OverrideValue]
    user_id: UUID | None = None

    def apply_to(self, context: Context) -> Context:
        """Replace what the headers say by what was stated."""
        return msgspec.structs.replace(context, **self.fields) if self.fields else context


class Parameter(msgspec.Struct, frozen=True):
    """A name that a request may state: the field that it fills, its parser, what it takes."""

    field: str
    read: Callable[[object], OverrideValue]
    takes: str


def parse_query(query: bytes) -> Overrides:
    """Parse a query; of a repeated parameter the first counts, unknown ones are ignored."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="replace")
    return parse_overrides(dict(reversed(pairs)))


def parse_overrides(
    given: Mapping[str, object], *, within: str = "", parameters: Mapping[str, Parameter] | None = None
) -> Overrides:
    """Parse values by name; `within` precedes the name in an error: `context.`."""
    fields: dict[str, OverrideValue] = {}
    problems: list[FieldProblem] = []
    for name, parameter in (PARAMETERS if parameters is None else parameters).items():
        if name not in given:
            continue
        try:
            fields[parameter.field] = parameter.read(given[name])
        except ValueError:
            field = f"{within}{name}"
            message = f"{field} must be {parameter.takes}, not {show_value(given[name])}."
            problems.append(FieldProblem(field, message))
    if problems:
        raise ValidationFailedError(" ".join(one.message for one in problems), errors=problems)
    user_id = fields.pop("user_id", None)
    return Overrides(fields, UUID(user_id) if isinstance(user_id, str) else None)


def _make_text_parser(normalise: Callable[[str], str | None]) -> Callable[[object], OverrideValue]:
    def read(value: object) -> str | None:
        if value is None or value == "":
            return None
        found = normalise(value) if isinstance(value, str) else None
        if found is None:
            raise ValueError(value)
        return found

    return read


def _parse_country(value: object) -> OverrideValue:
    # A server passes on what its own proxy says.
    if isinstance(value, str) and value.upper() in UNKNOWN_COUNTRIES:
        return None
    return _make_text_parser(normalize_country)(value)


def _parse_referrer(text: str) -> str | None:
    return extract_host(text) if "://" in text else normalize_domain(text)


def _parse_boolean(value: object) -> OverrideValue:
    found = BOOLEANS.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ValueError(value)  # noqa: TRY004 - every parser fails with the same error
    return found


def _parse_uuid(text: str) -> str:
    return str(UUID(text))


PARAMETERS: Final = {
    "device": Parameter("device", _make_text_parser(normalize_device), f"one of {', '.join(DEVICES)}"),
    "country": Parameter("country", _parse_country, "the two letters of a country, such as DE"),
    "language": Parameter(
        "language", _make_text_parser(normalize_language), "a language tag, such as de or de-AT"
    ),
    "loggedIn": Parameter("is_logged_in", _parse_boolean, "true or false"),
    "newVisitor": Parameter("is_new_visitor", _parse_boolean, "true or false"),
    "referrer": Parameter("referrer_domain", _make_text_parser(_parse_referrer), "an address or a domain"),
    "segment": Parameter(
        "segment", _make_text_parser(normalize_segment), f"a text of 1 to {SEGMENT_CHARACTERS_MAX} characters"
    ),
    "userId": Parameter("user_id", _make_text_parser(_parse_uuid), "a UUID"),
}
