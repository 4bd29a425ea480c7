"""The placements of a page: as many different banners as there can be, and nobody left empty."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from adloom.serving.direct.page import PageChoice, dedupe_banners, fill_page, has_no_repeats
from adloom.serving.index.index import Candidate

BANNERS = st.lists(st.integers(1, 5), max_size=4, unique=True)
PAGES = st.lists(st.tuples(BANNERS, st.integers(1, 2)), min_size=1, max_size=4)


def a_candidate(banner: int, campaign: int = 1) -> Candidate:
    return Candidate(
        pair=b"",
        campaign_key=campaign,
        banner_key=banner,
        creative=b"",
        placing=b"",
        timing=None,
        rules=(),
        is_capped=False,
    )


def page(*choices: tuple[list[int], int]) -> list[list[int]]:
    asked = [PageChoice([a_candidate(one) for one in banners], slots) for banners, slots in choices]
    return [[one.banner_key for one in answer] for answer in fill_page(asked)]


def test_a_banner_that_is_shown_already_gives_way_to_the_next() -> None:
    assert page(([1, 2], 1), ([1, 2], 1)) == [[1], [2]]


def test_who_could_show_something_else_leaves_a_banner_to_who_could_not() -> None:
    assert page(([1, 2], 1), ([1], 1)) == [[2], [1]]


def test_giving_way_goes_on_from_one_placement_to_the_next() -> None:
    assert page(([1, 2], 1), ([2, 3], 1), ([1], 1)) == [[2], [3], [1]]


def test_each_placement_gets_its_first_banner_before_any_gets_its_second() -> None:
    assert page(([1, 2, 3], 3), ([1], 1)) == [[2, 3], [1]]


def test_a_placement_that_would_stay_empty_repeats_what_is_there() -> None:
    assert page(([1], 1), ([1], 1)) == [[1], [1]]


def test_placements_in_no_conflict_show_what_they_would_alone() -> None:
    assert page(([1, 2, 3], 2), ([4, 1], 1)) == [[1, 2], [4]]


def test_a_banner_of_two_campaigns_is_one_banner() -> None:
    both = [a_candidate(1, campaign=1), a_candidate(1, campaign=2), a_candidate(2)]

    assert not has_no_repeats([both])
    assert dedupe_banners(both, at_most=9) == [both[0], both[2]]
    assert dedupe_banners(both, at_most=1) == [both[0]]


@given(PAGES)
def test_a_page_is_as_good_as_the_best_of_all_pages(choices: list[tuple[list[int], int]]) -> None:
    shown = page(*choices)

    assert all(set(answer) <= set(banners) for answer, (banners, _) in zip(shown, choices, strict=True))
    assert all(len(answer) <= slots for answer, (_, slots) in zip(shown, choices, strict=True))
    assert all(bool(answer) == bool(banners) for answer, (banners, _) in zip(shown, choices, strict=True))
    different = len({banner for answer in shown for banner in answer})
    assert different == best(choices)


@given(PAGES)
def test_a_banner_is_there_twice_only_where_no_other_could_take_its_place(
    choices: list[tuple[list[int], int]],
) -> None:
    shown = page(*choices)

    everything = [banner for answer in shown for banner in answer]
    for answer, (banners, _) in zip(shown, choices, strict=True):
        if any(everything.count(banner) > 1 for banner in answer):
            assert set(banners) <= set(everything)


def best(choices: list[tuple[list[int], int]]) -> int:
    """Try every way of giving each banner to one of the placements or to none."""
    banners = sorted({banner for listed, _ in choices for banner in listed})
    most = 0
    for holders in product(range(-1, len(choices)), repeat=len(banners)):
        given_to = list(zip(banners, holders, strict=True))
        if all(holder < 0 or banner in choices[holder][0] for banner, holder in given_to) and all(
            holders.count(number) <= slots for number, (_, slots) in enumerate(choices)
        ):
            most = max(most, sum(holder >= 0 for holder in holders))
    return most
