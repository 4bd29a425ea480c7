"""The taxonomies in the package are complete, and the slips in their tables are corrected."""

import subprocess
import sys
from importlib import resources

import pytest

from adloom.taxonomy.iab import load_content, load_content_of_products, load_products

SPORTS, TENNIS = "483", "539"


def test_the_published_tables_are_read_whole() -> None:
    roots = [node for node in load_content() if node.tier == 1]

    assert (len(load_content()), len(roots)) == (704, 37)
    assert (len(load_products()), len(load_products().list_children(None))) == (583, 45)
    assert {node.tier for node in load_content()} == {1, 2, 3, 4}
    assert {node.tier for node in load_products()} == {1, 2, 3}


def test_a_node_has_its_place() -> None:
    tennis = load_content().find(TENNIS)

    assert tennis is not None
    assert (tennis.name, tennis.path, tennis.parent_id) == ("Tennis", ("Sports", "Tennis"), SPORTS)
    assert TENNIS in load_content().list_descendants(SPORTS)


@pytest.mark.parametrize(
    ("product_id", "parent_id", "path"),
    [
        ("1000", None, ("Ad Safety Risk",)),
        ("1037", "1036", ("Business and Industrial", "Industrials", "Aerospace and Defense")),
        ("1041", "1036", ("Business and Industrial", "Industrials", "Transportation")),
        ("1120", "1097", ("Consumer Electronics", "Video Games")),
        ("1467", None, ("Personal/Consumer Telecom",)),
    ],
)
def test_a_product_lies_where_its_tiers_say(
    product_id: str, parent_id: str | None, path: tuple[str, ...]
) -> None:
    node = load_products().find(product_id)

    assert node is not None
    assert (node.parent_id, node.path) == (parent_id, path)


def test_horse_racing_is_below_equine_sports_although_its_parent_column_says_sports() -> None:
    assert load_content().list_ancestors("497") == ("496", SPORTS)


def test_names_have_no_blanks_at_their_ends() -> None:
    assert [node.name for node in (*load_content(), *load_products()) if node.name != node.name.strip()] == []


@pytest.mark.parametrize(
    ("product_id", "content_path"),
    [
        ("1004", ("Food & Drink", "Alcoholic Beverages")),  # Beer
        ("1006", ("Food & Drink", "Alcoholic Beverages")),  # Spirits: the table's id is one of cooking
        ("1291", ("Healthy Living", "Weight Loss")),  # Dieting: the table has it under another product id
    ],
)
def test_a_product_leads_to_content_by_name(product_id: str, content_path: tuple[str, ...]) -> None:
    found = load_content_of_products()[product_id]

    assert load_content().find_path(found) == content_path


def test_most_products_lead_to_content_and_only_to_what_exists() -> None:
    pairs = load_content_of_products()

    assert len(pairs) > 500
    assert set(pairs) <= {node.id for node in load_products()}
    assert set(pairs.values()) <= {node.id for node in load_content()}
    assert "1049" not in pairs, "cannabis leads to no content"


def test_the_attribution_lies_beside_the_data() -> None:
    notice = resources.files("adloom.taxonomy").joinpath("data", "NOTICE").read_text(encoding="utf-8")

    assert "IAB Tech" in notice
    assert "https://creativecommons.org/licenses/by/3.0/" in notice


def test_nothing_is_read_before_it_is_needed() -> None:
    code = (
        "from adloom.taxonomy import iab; "
        "print([f.cache_info().currsize for f in (iab.load_content, iab.load_products, iab.load_content_of_products)])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "[0, 0, 0]"
