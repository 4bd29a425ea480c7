"""For any document the answer says what to change; it is never a server error."""

from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adloom.catalog.api import CATALOG
from tests.support.documents import Importer

words = st.sampled_from(
    ["", "a", "\0", "hero", "01890000-0000-7000-8000-000000000000", "2026-11-15T12:00:00Z", "ü" * 300, "true"]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
items = [
    st.dictionaries(st.sampled_from(["key", "updatedAt", *spec.aliases.values()]), values, max_size=8)
    | values
    for spec in CATALOG.lists.specs
]
documents = st.fixed_dictionaries(
    {},
    optional={
        spec.list_name: st.lists(item, max_size=3)
        for spec, item in zip(CATALOG.lists.specs, items, strict=True)
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents)
async def test_a_hostile_document_causes_no_server_error(
    importer: Importer, document: dict[str, Any]
) -> None:
    answer = await importer.sent(msgspec.json.encode(document))

    assert answer.status_code in {200, 400}, answer.text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.text(max_size=5), max_size=4), max_size=4), st.sampled_from([",", ";", "\t"]))
async def test_a_hostile_sheet_causes_no_server_error(
    importer: Importer, rows: list[list[str]], comma: str
) -> None:
    header = comma.join(["kind", "id", "title", "tags"])
    text = "\n".join([header, *(comma.join(["banner", *row]) for row in rows)])

    answer = await importer.sent(text.encode(errors="replace"), media_type="text/csv")

    assert answer.status_code in {200, 400}, answer.text
