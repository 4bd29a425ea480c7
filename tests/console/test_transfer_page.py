"""Import and export in the console: the page, and where it says that something is wrong."""

import pytest

from adloom.catalog.api import CATALOG
from adloom.console.pages.system.transfer import NAMES, find_place, find_type
from tests.console.visitor import Visitor
from tests.support.for_each import for_each


@for_each(
    ("path", "place"),
    [
        ("row 5.primaryImageUrl", ("Row 5", "Address of the picture (primaryImageUrl)")),
        ("line 7", ("Line 7", "")),
        ("banners[3].primaryImageUrl", ("Banners, item 4", "Address of the picture (primaryImageUrl)")),
        ("targetingRules[0]", ("Targeting rules, item 1", "")),
        ("campaigns[1].value.0", ("Campaigns, item 2", "Value.0 (value.0)")),
        ("body", ("The file", "")),
        ("sommer", ("The file", "sommer")),
    ],
)
def test_a_problem_says_in_which_row_and_field_it_is(path: str, place: tuple[str, str]) -> None:
    assert find_place(path) == place


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("a.json", b"", "application/json"),
        ("A.CSV", b"{", "text/csv"),
        ("catalog", b' {"banners": []}', "application/json"),
        ("catalog.txt", b"kind,slug", "text/csv"),
    ],
)
def test_the_type_of_a_file_is_that_of_its_name_or_of_its_first_sign(
    name: str, data: bytes, media_type: str
) -> None:
    assert find_type(name, data) == media_type


def test_every_list_of_a_document_has_a_name() -> None:
    assert {spec.list_name for spec in CATALOG.lists.specs} == NAMES.keys()


async def test_an_admin_finds_both_under_system(ann: Visitor) -> None:
    page = await ann.get("/console/system?tab=transfer")

    assert page.status_code == 200
    assert "Download CSV" in page.text
    assert "first you see what it would change" in page.text
