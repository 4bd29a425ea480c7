"""The shapes that bodies, queries and answers of the control plane are made of."""

import re
import warnings
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.warnings import UnsupportedFieldAttributeWarning
from pydantic_core import PydanticKnownError, PydanticUndefined

from adloom.core.errors import StaleWriteError

S = TypeVar("S", bound=msgspec.Struct)

INT4_MAX: Final = 2**31 - 1
URL_LENGTH_MAX: Final = 2_048
TEXT_LENGTH_MAX: Final = 10_000
MOMENT_PATTERN: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}")
YEARS: Final = range(1970, 3000)  # Beyond, a moment leaves the range of one library or another.

# FastAPI ignores it too, but only while it declares a route; ours are built later (`defer_build`).
warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)


def _check_storable(text: str) -> str:
    # PostgreSQL stores every character but this one; JSON can spell half a surrogate, UTF-8 cannot.
    if "\0" in text:
        raise ValueError("must not contain NUL characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode text") from None
    return text


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _check_web_address(text: str) -> str:
    try:
        parts = urlsplit(text)
        # Browsers end the host at a backslash, and others do not.
        is_web = parts.scheme in {"http", "https"} and bool(parts.hostname) and "\\" not in parts.netloc
    except ValueError:
        is_web = False
    # Of all that is blank only the space itself counts as printable.
    if not is_web or " " in text or not text.isprintable():
        raise ValueError("must be an address that begins with http:// or https:// and names a host")
    return text


def make_pattern_check(pattern: str, message: str) -> Callable[[str], str]:
    """Make a check whose message says what to change; a pattern alone would only show itself."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError(message)
        return text

    return check


def _check_rfc3339(value: object) -> object:
    # Pydantic would take a number, as such or as text, as seconds since 1970.
    if not isinstance(value, str) or not MOMENT_PATTERN.match(value):
        raise ValueError("must be a time like 2026-11-15T12:00:00Z")
    return value


def _check_usable_moment(moment: datetime) -> datetime:
    # Not Pydantic's AwareDatetime: `Moment` annotates structs too, and msgspec knows only datetimes.
    if moment.tzinfo is None:
        raise PydanticKnownError("timezone_aware")
    if moment.year not in YEARS:
        raise ValueError(f"must be between the years {YEARS.start} and {YEARS.stop - 1}")
    return moment.astimezone(UTC)


def _convert_whole_number(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


# Last of an annotation. `1.0` is an integer for JSON Schema, and some writers of JSON have no other numbers.
TAKES_WHOLE_FLOATS: Final = BeforeValidator(_convert_whole_number)
Text = Annotated[str, AfterValidator(_check_storable), Field(max_length=TEXT_LENGTH_MAX)]
Text20 = Annotated[Text, Field(max_length=20)]
Text100 = Annotated[Text, Field(max_length=100)]
Text255 = Annotated[Text, Field(max_length=255)]
EmailAddress = Annotated[
    Text255,
    # No comma, no line, no brackets: it becomes part of a header.
    AfterValidator(
        make_pattern_check(r"[^@\s,;<>\"]+@[^@\s,;<>\"]+", "must be an e-mail address, like ann@example.com")
    ),
]
NOT_BLANK: Final = r"\S"
Name = Annotated[Text255, AfterValidator(_check_not_blank), Field(json_schema_extra={"pattern": NOT_BLANK})]
WebAddress = Annotated[Text, Field(max_length=URL_LENGTH_MAX), AfterValidator(_check_web_address)]
Moment = Annotated[datetime, BeforeValidator(_check_rfc3339), AfterValidator(_check_usable_moment)]
Flag = Annotated[bool, Field(strict=True)]
Natural = Annotated[int, Field(strict=True, ge=0, le=INT4_MAX), TAKES_WHOLE_FLOATS]
Positive = Annotated[int, Field(strict=True, ge=1, le=INT4_MAX), TAKES_WHOLE_FLOATS]


class Body(BaseModel):
    """What a request says: camelCase, and nothing that we do not know."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=False,
        extra="forbid",
        frozen=True,
        defer_build=True,  # With the first request: all of them together take half a second of a start.
    )

    def to_fields(self) -> dict[str, Any]:
        """Return the fields for the struct that is made of them."""
        return {name: getattr(self, name) for name in type(self).model_fields}


class Patch(Body):
    """Makes the fields of a body optional: `class BannerPatch(Patch, BannerBody)`.

    A field that is absent stays as it is; null empties a field that may be empty. `updatedAt` is
    not changed but compared: where it is given, the thing must not have changed since.
    """

    updated_at: Moment

    @classmethod
    def __pydantic_init_subclass__(cls, **_options: Any) -> None:  # noqa: ANN401 - as Pydantic declares it
        """Give every field a default that is never read."""
        for field in cls.model_fields.values():
            field.default = PydanticUndefined
            field.default_factory = _return_none

    def apply_to(self, thing: S, *, only: Collection[str] | None = None, **besides: datetime) -> S:
        """Change the fields that were given; they have the names of the thing's own. `only` leaves out others."""
        given: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        if "updated_at" in given and given.pop("updated_at") != getattr(thing, "updated_at", None):
            raise StaleWriteError
        if only is not None:
            given = {name: value for name, value in given.items() if name in only}
        return msgspec.structs.replace(thing, **given, **besides)


class Answer(BaseModel):
    """What a response says: camelCase, read off the fields of a struct."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_alias=False,
        validate_by_name=True,
        serialize_by_alias=True,
        from_attributes=True,
        defer_build=True,
    )


def _return_none() -> None:
    return None
