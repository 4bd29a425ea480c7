"""The placements of a page: as many different banners as possible, and no placement left empty."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from adloom.serving.direct.page import PageChoice, fill_page, has_no_repeats
from adloom.serving.eligibility.decide import dedupe_banners
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
    )


def page(*choices: tuple[list[int], int]) -> list[list[int]]:
    page_choices = [PageChoice([a_candidate(one) for one in banners], slots) for banners, slots in choices]
    return [[one.banner_key for one in answer] for answer in fill_page(page_choices)]


def test_a_placement_does_not_repeat_a_banner_of_another_placement() -> None:
    assert page(([1, 2], 1), ([1, 2], 1)) == [[1], [2]]


def test_a_placement_with_a_choice_leaves_a_banner_to_one_without() -> None:
    assert page(([1, 2], 1), ([1], 1)) == [[2], [1]]


def test_several_placements_can_change_their_banner_in_turn() -> None:
    assert page(([1, 2], 1), ([2, 3], 1), ([1], 1)) == [[2], [3], [1]]


def test_each_placement_gets_its_first_banner_before_any_gets_its_second() -> None:
    assert page(([1, 2, 3], 3), ([1], 1)) == [[2, 3], [1]]


def test_a_placement_that_would_stay_empty_repeats_a_banner() -> None:
    assert page(([1], 1), ([1], 1)) == [[1], [1]]


def test_placements_without_a_conflict_show_what_they_would_show_alone() -> None:
    assert page(([1, 2, 3], 2), ([4, 1], 1)) == [[1, 2], [4]]


def test_a_banner_in_two_campaigns_counts_as_one_banner() -> None:
    both = [a_candidate(1, campaign=1), a_candidate(1, campaign=2), a_candidate(2)]

    assert not has_no_repeats([both])
    assert dedupe_banners(both, at_most=9) == [both[0], both[2]]
    assert dedupe_banners(both, at_most=1) == [both[0]]


@given(PAGES)
def test_a_page_has_as_many_different_banners_as_the_best_possible_page(
    choices: list[tuple[list[int], int]],
) -> None:
    shown = page(*choices)

    assert all(set(answer) <= set(banners) for answer, (banners, _) in zip(shown, choices, strict=True))
    assert all(len(answer) <= slots for answer, (_, slots) in zip(shown, choices, strict=True))
    assert all(bool(answer) == bool(banners) for answer, (banners, _) in zip(shown, choices, strict=True))
    different = len({banner for answer in shown for banner in answer})
    assert different == count_of_best_page(choices)


@given(PAGES)
def test_a_banner_is_repeated_only_if_no_other_could_take_its_place(
    choices: list[tuple[list[int], int]],
) -> None:
    shown = page(*choices)

    all_shown = [banner for answer in shown for banner in answer]
    for answer, (banners, _) in zip(shown, choices, strict=True):
        if any(all_shown.count(banner) > 1 for banner in answer):
            assert set(banners) <= set(all_shown)


def count_of_best_page(choices: list[tuple[list[int], int]]) -> int:
    """Return the most different banners over all ways to give each banner to one placement or to none."""
    banners = sorted({banner for listed, _ in choices for banner in listed})
    most = 0
    for holders in product(range(-1, len(choices)), repeat=len(banners)):
        given_to = list(zip(banners, holders, strict=True))
        if all(holder < 0 or banner in choices[holder][0] for banner, holder in given_to) and all(
            holders.count(number) <= slots for number, (_, slots) in enumerate(choices)
        ):
            most = max(most, sum(holder >= 0 for holder in holders))
    return most
