"""Decodes a JSON body into a struct; an error names every wrong field at once."""

import re
from typing import Any, Final, Generic, TypeVar

import msgspec

from adloom.core.errors import FieldProblem, ValidationFailedError

T = TypeVar("T", bound=msgspec.Struct)

# PostgreSQL cannot keep this character in a text, so it must not get that far.
NUL_ESCAPED: Final = b"\\u0000"
BACKSLASH: Final = ord("\\")  # A number is looked for in a fifth of the time that a text takes.
_NUL_PROBLEM: Final = "The character U+0000 is not allowed."
_PATH: Final = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")

_decode_object: Final = msgspec.json.Decoder(dict[str, Any]).decode


class BodyDecoder(Generic[T]):
    """Decodes the bodies of one route, or parts of them that are called otherwise; unknown fields are ignored."""

    def __init__(
        self, kind: type[T], *, called: str = "body", described_as: type[msgspec.Struct] | None = None
    ) -> None:
        """Decode into a kind; errors are those of another one, which may be stricter."""
        self._called = called
        self._fields = msgspec.structs.fields(described_as or kind)
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode

    def decode(self, body: bytes) -> T:
        """Decode a body, or raise an error that names every wrong field."""
        try:
            decoded = self._decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            decoded = self._decode_last(body, error)
        # Checked in the decoded fields only: an ignored field may hold anything.
        if BACKSLASH in body and NUL_ESCAPED in body:
            problems = self._find_nuls(msgspec.to_builtins(decoded))
            if problems:
                raise self._build_error(problems)
        return decoded

    def _decode_last(self, body: bytes, error: Exception) -> T:
        """Check field by field, as each was given last: the decoder stops at the first mistake."""
        try:
            values = _decode_object(body)
        except msgspec.ValidationError as problem:
            if _PATH.search(str(problem)) is None:
                raise ValidationFailedError(f"The {self._called} must be a JSON object.") from error
            # A value that no field can have, as a number beyond all bounds: what the decoder says has to do.
            raise self._build_error([_make_problem("", str(error))]) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            # The first mistake may be that of a field, further ahead.
            message = f"The {self._called} is not JSON that can be read: {problem}."
            raise ValidationFailedError(message) from error
        problems = [problem for field in self._fields if (problem := _find_problem(field, values))]
        wrong = {problem.field for problem in problems}
        problems += [problem for problem in self._find_nuls(values) if problem.field not in wrong]
        if problems:
            raise self._build_error(problems) from error
        # A field that was given twice was wrong the first time and is right the last.
        try:
            return msgspec.convert(values, self._kind)
        except msgspec.ValidationError:
            raise self._build_error([_make_problem("", str(error))]) from error

    def _find_nuls(self, values: dict[str, Any]) -> list[FieldProblem]:
        names = [field.encode_name for field in self._fields]
        return [FieldProblem(name, _NUL_PROBLEM) for name in names if _has_nul(values.get(name))]

    def _build_error(self, problems: list[FieldProblem]) -> ValidationFailedError:
        names = ", ".join(dict.fromkeys(problem.field for problem in problems))
        return ValidationFailedError(
            f"The {self._called} has fields that are missing or wrong: {names}.", errors=problems
        )


def _find_problem(field: msgspec.structs.FieldInfo, values: dict[str, Any]) -> FieldProblem | None:
    name = field.encode_name
    if name not in values:
        return FieldProblem(name, "This field is required.") if field.required else None
    try:
        msgspec.convert(values[name], field.type)
    except msgspec.ValidationError as error:
        return _make_problem(name, str(error))
    return None


def _make_problem(name: str, message: str) -> FieldProblem:
    """Move the path that msgspec appends to its message into the field's name."""
    place = _PATH.search(message)
    if place is None:
        return FieldProblem(name or "body", f"{message}.")
    path = place["path"]
    joint = "." if name and not path.startswith("[") else ""
    return FieldProblem(f"{name}{joint}{path}", f"{message[: place.start()]}.")


def _has_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    # Within lists and objects it is enough to know that there is one.
    return isinstance(value, list | dict) and NUL_ESCAPED in msgspec.json.encode(value)
