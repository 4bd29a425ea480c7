"""What a document looks like, as a model: the API's description shows it for exports and imports."""

from typing import Annotated, Any, Final, get_args
from uuid import UUID

import msgspec
from pydantic import Field
from pydantic.fields import FieldInfo

from adloom.resource.forms import build_body
from adloom.resource.spec import DocumentLists, ResourceSpec
from adloom.resource.transfer.document import FORMAT, FORMAT_VERSION, KEY, KEY_LENGTH_MAX
from adloom.runtime.http.api.document import REF
from adloom.runtime.http.api.shapes import Body, Moment, Natural, Text, Text255

SCHEMA_NAME: Final = "CatalogDocument"
KEY_SENTENCE: Final = "A name by which other items of the document can refer to this one. It is not stored."
SEEN_SENTENCE: Final = "The item is refused if the object has changed since this moment."
# Items refer to each other by keys and by a slug.
EXAMPLE: Final[dict[str, Any]] = {
    "format": FORMAT,
    "version": FORMAT_VERSION,
    "placements": [{"slug": "shop-top", "label": "Shop, above everything", "layoutType": "full_static"}],
    "banners": [
        {"key": "leaves", "title": "Leaves", "primaryImageUrl": "https://cdn.example.com/leaves.png"}
    ],
    "campaigns": [{"key": "autumn", "name": "Autumn in the shop", "status": "active"}],
    "links": [{"campaignId": "autumn", "placementId": "shop-top"}],
    "assignments": [{"campaignId": "autumn", "placementId": "shop-top", "bannerId": "leaves", "weight": 50}],
    "targetingRules": [{"campaignId": "autumn", "ruleType": "device", "operator": "in", "value": ["mobile"]}],
}


def describe_document(lists: DocumentLists) -> dict[str, Any]:
    """Return the schemas of a document, by name, for the API's description."""
    described = build_document_model(lists).model_json_schema(ref_template=f"{REF}{{model}}")
    parts: dict[str, Any] = described.pop("$defs")
    return {**parts, SCHEMA_NAME: described}


def build_document_model(lists: DocumentLists) -> type[Body]:
    """Make the model of a document. All lists may be left out, and most fields of an item, too."""
    fields: dict[str, Any] = {
        "format": (Annotated[str, Field(json_schema_extra={"const": FORMAT})], _make_optional(None)),
        "version": (Annotated[int, Field(json_schema_extra={"const": FORMAT_VERSION})], _make_optional(None)),
    }
    for spec in lists.specs:
        fields[spec.list_name] = (list[_build_item(spec)], _make_optional(None, alias=spec.list_name))
    return build_body(
        SCHEMA_NAME,
        "What an export writes and an import takes. An item with the id, or the natural key, of an object that is there"
        " changes it: fields that it leaves out stay, null empties them. Any other item makes a new object.",
        fields,
    )


def _build_item(spec: ResourceSpec[Any]) -> Any:  # noqa: ANN401 - a type
    fields: dict[str, Any] = {
        KEY: (Annotated[Text, Field(min_length=1, max_length=KEY_LENGTH_MAX)], _make_optional(KEY_SENTENCE))
    }
    for name, alias in spec.aliases.items():
        is_needed = name in spec.identity and (name != "id" or spec.has_own_ids)
        annotation, described = _describe_field(spec, name)
        fields[name] = (
            annotation,
            Field(alias=alias, description=described)
            if is_needed
            else _make_optional(described, alias=alias),
        )
    if "updated_at" in spec.struct.__struct_fields__:
        fields["updated_at"] = (Moment, _make_optional(SEEN_SENTENCE))
    kind = spec.kind[0].upper() + spec.kind[1:]
    return build_body(f"{kind}Item", f"One of the `{spec.list_name}` of a document.", fields)


def _describe_field(spec: ResourceSpec[Any], name: str) -> tuple[Any, str | None]:
    models = (spec.body, spec.patch, spec.decisions)
    declared = next((one.model_fields[name] for one in models if name in one.model_fields), None)
    is_nullable = declared is not None and type(None) in get_args(declared.annotation)
    if name in spec.references:
        other = spec.references[name]
        annotation: Any = Text255 if other.identity_type == "uuid" else Natural | Text255
        natural = f", the {other.natural_key}" if other.natural_key else ""
        sentence = f"Of the {other.words}: the id{natural}, or the key in this document."
        return (annotation | None if is_nullable else annotation), sentence
    if name == "id":
        return UUID if spec.identity_type == "uuid" else Natural, None
    if name == "status" and spec.status is not None:
        return spec.status, None
    assert declared is not None, "a document has what the routes take"
    return Annotated[declared.annotation, *declared.metadata, _keep_extra(declared)], declared.description


def _keep_extra(declared: FieldInfo) -> Any:  # noqa: ANN401 - a field
    return Field(json_schema_extra=declared.json_schema_extra)


def _make_optional(description: str | None, **more: Any) -> Any:  # noqa: ANN401 - a field
    """Return a field that may be left out, without a value that would stand for that."""
    return Field(default_factory=msgspec.UnsetType, description=description, **more)
