"""What a request says about its reader in so many words, for servers that ask on a reader's behalf.

The same names stand in the query of a request and in the `context` of a body. An empty text says
that the thing is unknown; where a name is missing the headers decide, which may be the server's own.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias
from urllib.parse import parse_qsl
from uuid import UUID

import msgspec

from adloom.core.errors import FieldProblem, ValidationFailedError
from adloom.targeting.context import Context
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

SHOWN_CHARACTERS_MAX: Final = 60
BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}

OverrideValue: TypeAlias = str | bool | None


class Overrides(msgspec.Struct, frozen=True):
    """The fields of a context that a request gives itself, and for whom it asks."""

    fields: Mapping[str, OverrideValue]
    user_id: UUID | None = None

    def apply_to(self, context: Context) -> Context:
        """Put what was given in the place of what the headers say."""
        return msgspec.structs.replace(context, **self.fields) if self.fields else context


class Parameter(msgspec.Struct, frozen=True):
    """A name that a request may give: the field it fills, who reads it, what it takes."""

    field: str
    read: Callable[[object], OverrideValue]
    takes: str


def parse_query(query: bytes) -> Overrides:
    """Read the parameters of a query; of a repeated one the first counts, unknown ones are ignored."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, errors="replace")
    return parse_overrides(dict(reversed(pairs)))


def parse_overrides(
    given: Mapping[str, object], *, within: str = "", parameters: Mapping[str, Parameter] | None = None
) -> Overrides:
    """Read what was given by name; `within` is what stands before the name in an error: `context.`."""
    fields: dict[str, OverrideValue] = {}
    problems: list[FieldProblem] = []
    for name, parameter in (PARAMETERS if parameters is None else parameters).items():
        if name not in given:
            continue
        try:
            fields[parameter.field] = parameter.read(given[name])
        except ValueError:
            field = f"{within}{name}"
            message = f"{field} must be {parameter.takes}, not {_shown(given[name])}."
            problems.append(FieldProblem(field, message))
    if problems:
        raise ValidationFailedError(" ".join(one.message for one in problems), errors=problems)
    user_id = fields.pop("user_id", None)
    return Overrides(fields, UUID(user_id) if isinstance(user_id, str) else None)


def _text(normalise: Callable[[str], str | None]) -> Callable[[object], OverrideValue]:
    def read(value: object) -> str | None:
        if value is None or value == "":
            return None
        found = normalise(value) if isinstance(value, str) else None
        if found is None:
            raise ValueError(value)
        return found

    return read


def _country(value: object) -> OverrideValue:
    # A server passes on what its own proxy has told it.
    if isinstance(value, str) and value.upper() in UNKNOWN_COUNTRIES:
        return None
    return _text(normalize_country)(value)


def _referrer(text: str) -> str | None:
    return extract_host(text) if "://" in text else normalize_domain(text)


def _boolean(value: object) -> OverrideValue:
    found = BOOLEANS.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ValueError(value)  # noqa: TRY004 - every reader refuses by the same error
    return found


def _uuid(text: str) -> str:
    return str(UUID(text))


PARAMETERS: Final = {
    "device": Parameter("device", _text(normalize_device), f"one of {', '.join(DEVICES)}"),
    "country": Parameter("country", _country, "the two letters of a country, such as DE"),
    "language": Parameter("language", _text(normalize_language), "a language tag, such as de or de-AT"),
    "loggedIn": Parameter("is_logged_in", _boolean, "true or false"),
    "newVisitor": Parameter("is_new_visitor", _boolean, "true or false"),
    "referrer": Parameter("referrer_domain", _text(_referrer), "an address or a domain"),
    "segment": Parameter(
        "segment", _text(normalize_segment), f"a text of 1 to {SEGMENT_CHARACTERS_MAX} characters"
    ),
    "userId": Parameter("user_id", _text(_uuid), "a UUID"),
}


def _shown(value: object) -> str:
    written = msgspec.json.encode(value).decode()
    return written if len(written) <= SHOWN_CHARACTERS_MAX else written[:SHOWN_CHARACTERS_MAX] + "…"
