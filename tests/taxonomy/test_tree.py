"""A taxonomy's relations agree with each other, whatever its shape."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.taxonomy.tree import Taxonomy

Paths = dict[str, tuple[str, ...]]


# Of each node the name, the place of its parent among those before it, and its place in the order.
NODES = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 30), st.integers(0, 1_000)), min_size=1, max_size=30
)


@st.composite
def forests(draw: st.DrawFn) -> Paths:
    """Paths of which every beginning is a path too, in any order."""
    made: list[tuple[str, ...]] = [()]
    placed: list[tuple[int, tuple[str, ...]]] = []
    for number, (name, parent, place) in enumerate(draw(NODES)):
        made.append((*made[parent % len(made)], f"{name} {number}"))
        placed.append((place, made[-1]))
    return {str(position): path for position, (_, path) in enumerate(sorted(placed))}


@given(forests())
def test_ancestors_and_descendants_agree(paths: Paths) -> None:
    taxonomy = Taxonomy(paths)

    for node in taxonomy:
        assert {
            one.id for one in taxonomy if node.id in taxonomy.list_ancestors(one.id)
        } == taxonomy.list_descendants(node.id)


@given(forests())
def test_there_are_no_cycles(paths: Paths) -> None:
    taxonomy = Taxonomy(paths)

    for node in taxonomy:
        assert node.id not in node.ancestors
        assert node.id not in taxonomy.list_descendants(node.id)
        assert len(set(node.ancestors)) == len(node.ancestors) == node.tier - 1


@given(forests())
def test_a_path_is_the_names_of_the_ancestors_and_ends_with_the_name(paths: Paths) -> None:
    taxonomy = Taxonomy(paths)

    for node in taxonomy:
        assert node.path == paths[node.id] == taxonomy.find_path(node.id)
        assert node.path[-1] == node.name
        names = [found.name for above in reversed(node.ancestors) if (found := taxonomy.find(above))]
        assert [*names, node.name] == list(node.path)


@given(forests())
def test_every_node_is_a_child_once(paths: Paths) -> None:
    taxonomy = Taxonomy(paths)

    listed = [child for parent in [None, *paths] for child in taxonomy.list_children(parent)]
    assert sorted(child.id for child in listed) == sorted(paths)
    assert all(child.id in taxonomy.list_descendants(child.parent_id) for child in listed if child.parent_id)
    assert len(taxonomy) == len(paths)


@given(forests())
def test_a_node_is_found_by_its_name_and_its_id(paths: Paths) -> None:
    taxonomy = Taxonomy(paths)

    for node in taxonomy:
        assert taxonomy.search(node.name.upper())[0].name.startswith(node.name)
        assert node in taxonomy.search(node.id)


def test_what_is_unknown_has_no_relations() -> None:
    taxonomy = Taxonomy({"1": ("Sports",)})

    assert taxonomy.find("2") is None
    assert (taxonomy.find_path("2"), taxonomy.list_ancestors("2"), taxonomy.list_descendants("2")) == (
        (),
        (),
        frozenset(),
    )
    assert list(taxonomy.list_children("2")) == []
    assert "2" not in taxonomy


def test_two_nodes_of_one_path_are_refused() -> None:
    with pytest.raises(AssertionError, match="no two nodes"):
        Taxonomy({"1": ("Sports",), "2": ("Sports",)})


def test_a_search_finds_words_in_any_order_the_best_first() -> None:
    names = ("College Sports", "Sports", "Sports Radio", "Food & Drink", "Arts and Crafts")
    taxonomy = Taxonomy({str(number): (name,) for number, name in enumerate(names)})

    assert [node.name for node in taxonomy.search("sport")] == ["Sports", "Sports Radio", "College Sports"]
    assert [node.name for node in taxonomy.search("radio sports")] == ["Sports Radio"]
    assert [node.name for node in taxonomy.search("food and drink")] == ["Food & Drink"]
    assert [node.name for node in taxonomy.search("crafts & arts")] == ["Arts and Crafts"]
    assert taxonomy.search("   ") == []
