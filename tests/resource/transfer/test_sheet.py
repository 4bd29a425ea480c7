"""The document as a CSV sheet."""

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.catalog.api import CATALOG
from adloom.core.errors import ValidationFailedError
from adloom.resource.transfer.sheet import read_cell, read_cell_types, read_csv, write_cell
from tests.support.documents import Importer
from tests.support.for_each import for_each

json_values = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
SHEET = """kind,key,slug,label,layoutType,title,primaryImageUrl,tags,name,campaignId,placementId,bannerId,isActive,value,ruleType,operator,maxBanners
placement,p,hero,Hero,full_slider,,,,,,,,TRUE,,,,2
banner,b,,,,Tea,https://cdn.example.com/a.png,"[""a""]",,,,,false,,,,
campaign,c,,,,,,,Autumn,,,,,,,,
,,,,,,,,,,,,,,,,
link,,,,,,,,,c,hero,,,,,,
assignment,,,,,,,,,c,hero,b,,,,,
targetingRule,,,,,,,,,c,,,,"[""IN""]",country,in,
"""


@given(st.text())
def test_a_text_survives_writing_and_reading(text: str) -> None:
    assert read_cell(write_cell(text), is_text=True) == text


@given(json_values.filter(lambda value: not isinstance(value, str)))
def test_any_other_value_survives_writing_and_reading(value: Any) -> None:
    assert read_cell(write_cell(value), is_text=False) == value


@given(st.text())
def test_no_cell_begins_like_a_formula(text: str) -> None:
    assert not write_cell(text).startswith(("=", "+", "-", "@", "\t", "\r"))


def test_the_field_types_decide_how_cells_are_read() -> None:
    cells = {spec.kind: read_cell_types(spec) for spec in CATALOG.lists.specs}

    assert {"slug", "layoutType", "timezone", "publisherId"} <= cells["placement"].text
    assert not {"maxBanners", "isActive", "floorCpm"} & cells["placement"].text
    assert not {"tags", "mediaVariants", "ctaOpenNewTab"} & cells["banner"].text
    assert "value" not in cells["targetingRule"].text
    assert {"description", "brandId", "publishAt"} <= cells["banner"].nullable
    assert not {"title", "isActive", "tags"} & cells["banner"].nullable


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
async def test_a_sheet_saved_by_a_spreadsheet_program_is_imported(
    delimiter: str, bom: str, importer: Importer
) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(csv.reader(io.StringIO(SHEET)))

    report = await importer.imported((bom + text.getvalue()).encode(), media_type="text/csv; charset=utf-8")

    assert report["created"] == 6
    exported = await importer.exported()
    assert exported["placements"][0]["maxBanners"] == 2
    assert (exported["banners"][0]["tags"], exported["banners"][0]["isActive"]) == (["a"], False)


async def test_problems_of_a_sheet_are_reported_by_their_rows(importer: Importer) -> None:
    sheet = (
        "kind,title,primaryImageUrl,priority,slug\nbanner,Tea,https://a.example/,many,\nbanner,,nowhere,,x\n"
    )

    problems = await importer.problems(sheet.encode(), media_type="text/csv")

    assert set(problems) == {
        "row 2.priority",
        "row 3.title",
        "row 3.primaryImageUrl",
        "row 3.slug",
    }


async def test_an_empty_cell_clears_a_field_and_a_missing_column_keeps_it(importer: Importer) -> None:
    banner = await importer.client.make_banner(headline="Old", description="Kept", priority=4)
    sheet = f"kind,id,headline,priority\nbanner,{banner['id']},,\n"

    await importer.imported(sheet.encode(), media_type="text/csv")

    after = (await importer.client.get(f"/admin/banners/{banner['id']}")).json()
    assert (after["headline"], after["description"], after["priority"]) == (None, "Kept", 4)


async def test_a_row_says_of_which_state_it_is(importer: Importer) -> None:
    banner = await importer.client.make_banner()
    sheet = f"kind,id,title,updatedAt\nbanner,{banner['id']},Mine,{banner['updatedAt']}\n".encode()

    report = await importer.imported(sheet, media_type="text/csv")
    problems = await importer.problems(sheet, media_type="text/csv")

    assert report["updated"] == 1
    assert "changed after you read it" in problems["row 2"]


@for_each(
    ("sheet", "field"),
    [
        (b"", "row 1"),
        (b"title,kind\n", "row 1"),
        (b"kind", "row 1"),
        (b"kind,colour\n", "row 1.colour"),
        (b"kind,title,title\n", "row 1.title"),
        (b"kind,title\nthing,a\n", "row 2.kind"),
        (b"kind,title\nbanner,a,b\n", "row 2"),
        (b'kind,title\nbanner,"a\n', "line 2"),
        (b"kind,title\nbanner,\xff\n", "body"),
    ],
)
def test_an_invalid_sheet_is_refused(sheet: bytes, field: str) -> None:
    with pytest.raises(ValidationFailedError) as refused:
        read_csv(sheet, CATALOG.lists)

    assert [problem.field for problem in refused.value.errors] == [field]
