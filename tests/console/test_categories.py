"""Categories as chips and as areas: names of pages run nowhere, and every page has its place."""

from hypothesis import given
from hypothesis import strategies as st

from adloom.console.components.categories import (
    STEP,
    build_category_chips,
    build_evidence_list,
    choose_confidence_kind,
    describe_category,
)
from adloom.console.components.charts.treemap import TreemapPart, build_treemap_options

CATS = "424"
PARTS = st.lists(
    st.builds(
        TreemapPart,
        id=st.text(min_size=1, max_size=3),
        path=st.lists(st.sampled_from(["Pets", "Cats", "Sports"]), min_size=1, max_size=3),
        pages=st.integers(1, 1_000),
    ),
    max_size=20,
)


def test_a_chip_names_the_category_its_path_and_its_confidence() -> None:
    chip = build_category_chips([{"id": CATS, "name": "Cats", "confidence": 0.87}])

    assert "Cats" in chip
    assert f'title="Pets{STEP}Cats, 87%"' in chip
    assert "width: 87%" in chip


def test_an_unknown_category_is_named_by_its_id() -> None:
    assert describe_category("no such id") == "no such id"


def test_the_colour_of_a_chip_is_its_confidence() -> None:
    assert [choose_confidence_kind(share) for share in (0.9, 0.6, 0.5, 0.35, 0.2)] == [
        "good",
        "good",
        "",
        "",
        "warn",
    ]


def test_what_a_page_says_is_no_markup() -> None:
    shown = build_evidence_list(
        [{"phrase": "<b>", "excerpt": "<script>alert(1)</script>", "similarity": 0.5}]
    )

    assert "<script>" not in shown
    assert "<b>" not in shown


@given(PARTS)
def test_every_page_has_its_place_in_the_areas(parts: list[TreemapPart]) -> None:
    roots = build_treemap_options(parts)["series"][0]["data"]

    leaves = [leaf for root in roots for leaf in root["children"]]
    assert sorted((leaf["id"], leaf["value"]) for leaf in leaves) == sorted(
        (part.id, part.pages) for part in parts
    )
    assert [root["value"] for root in roots] == sorted((root["value"] for root in roots), reverse=True)
    for root in roots:
        assert root["value"] == sum(leaf["value"] for leaf in root["children"])
