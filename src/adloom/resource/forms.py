"""Pydantic models made from a noun's struct: the body of a new thing, its patch, its answer.

The annotations of the struct's fields say what clients may send (`Name`, `Domain`, `Field(alias=…)`), its
defaults what they may leave out. An answer shows the same fields without the rules for sending them.
"""

# pure

from collections.abc import Collection, Mapping, Sequence
from datetime import time
from decimal import Decimal
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec
from pydantic import AfterValidator, Field, create_model
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from adloom.core.money import Micros
from adloom.resource.access import Owner
from adloom.resource.shapes import AmountShown, PriceShown, TimeOfDayShown
from adloom.runtime.http.api.shapes import Answer, Body, Patch

# What the server sets; a noun may add to it.
SET_BY_SERVER: Final = frozenset({"id", "created_by", "created_at", "updated_at", "deleted_at"})
_LAST: Final = ("created_at", "updated_at", "deleted_at")
_SHOWN: Final[Mapping[Any, Any]] = {Micros: PriceShown, time: TimeOfDayShown, Decimal: AmountShown}


def read_annotations(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the annotation of each field, with all that it says to Pydantic."""
    hints = get_type_hints(struct, include_extras=True)
    return {name: hints[name] for name in struct.__struct_fields__}


def find_alias(name: str, annotation: object) -> str:
    given = [info.alias for info in _list_field_infos(annotation) if info.alias]
    return given[0] if given else to_camel(name)


def strip_rules(annotation: Any) -> Any:  # noqa: ANN401 - a type
    """Return a type without what it says about sending it; money and times as they are shown."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return strip_rules(arguments[0])
    if origin in {Union, UnionType}:
        return Union[tuple(strip_rules(argument) for argument in arguments)]  # noqa: UP007 - made at run time
    if origin is not None:
        return origin[tuple(strip_rules(argument) for argument in arguments)]
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return _build_part_answer(annotation)
    return _SHOWN.get(annotation, annotation)


def build_answer(
    name: str,
    doc: str,
    struct: type[msgspec.Struct],
    *,
    aliases: Mapping[str, str] | None = None,
    **instead: tuple[Any, Any],
) -> type[Answer]:
    """Make the model of an answer: the struct's fields in its order, its moments last; `instead` replaces or adds."""
    annotations = read_annotations(struct)
    names = [field for field in annotations if field not in _LAST]
    names += [field for field in _LAST if field in annotations]
    fields: dict[str, Any] = {}
    for field in names:
        annotation = annotations[field]
        described = [info.description for info in _list_field_infos(annotation) if info.description]
        alias = (aliases or {}).get(field) or find_alias(field, annotation)
        fields[field] = (
            strip_rules(annotation),
            Field(alias=alias, description=described[0] if described else None),
        )
    fields.update(instead)
    return create_model(name, __base__=Answer, __doc__=doc, **fields)


def _list_field_infos(annotation: object) -> list[FieldInfo]:
    metadata: Sequence[object] = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return [item for item in metadata if isinstance(item, FieldInfo)]


def build_body(name: str, doc: str, fields: Mapping[str, Any]) -> type[Body]:
    """Make the model of a body; a field is an annotation with its default."""
    return create_model(name, __base__=Body, __doc__=doc, **dict(fields))


def build_patch(name: str, doc: str, fields: Mapping[str, Any]) -> type[Patch]:
    """Make the model of a patch: the same fields, each of which may be left out."""
    optional: dict[str, Any] = {key: (value[0], ...) for key, value in fields.items()}
    return create_model(name, __base__=Patch, __doc__=doc, **optional)


def list_fields(struct: type[msgspec.Struct], *, but: Collection[str]) -> dict[str, Any]:
    """Return the fields that clients send, each an annotation with its default."""
    annotations = read_annotations(struct)
    return {
        field.name: (_build_part(annotations[field.name]), _find_default(field))
        for field in msgspec.structs.fields(struct)
        if field.name not in but
    }


def _build_part(annotation: Any) -> Any:  # noqa: ANN401 - a type
    """Return a field's annotation; a field that is a struct of its own is read by a body made from that."""
    if not (isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)):
        return annotation  # pyright: ignore[reportUnknownVariableType] - a type
    body = build_body(f"{annotation.__name__}Body", annotation.__doc__ or "", list_fields(annotation, but=()))

    def build(sent: Body) -> msgspec.Struct:
        return annotation(**sent.to_fields())

    return Annotated[body, AfterValidator(build)]


@cache
def _build_part_answer(struct: type[msgspec.Struct]) -> type[Answer]:
    return build_answer(f"{struct.__name__}Answer", struct.__doc__ or "", struct)


def make_owner_field(owner: Owner) -> tuple[Any, None]:
    """Return the field by which a body names the owner; the server decides whether it may."""
    return Annotated[UUID | None, Field(alias=owner.alias, description=owner.description)], None


def _find_default(field: msgspec.structs.FieldInfo) -> Any:  # noqa: ANN401 - any value
    if field.default_factory is not msgspec.NODEFAULT:
        return Field(default_factory=field.default_factory)
    return ... if field.default is msgspec.NODEFAULT else field.default
