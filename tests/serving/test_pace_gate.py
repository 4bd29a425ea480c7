"""What the pace of campaigns leaves out takes no part: it neither keeps fallbacks away nor uses up tries."""

from collections.abc import Callable

from adloom.serving.leases.pace_gate import PaceGate


def count_draws(left_out: set[int]) -> tuple[Callable[[int], bool], list[int]]:
    drawn: list[int] = []

    def draw(key: int) -> bool:
        drawn.append(key)
        return key in left_out

    return draw, drawn


def test_a_campaign_is_drawn_once_a_request_and_only_if_it_is_looked_at() -> None:
    draw, drawn = count_draws({2})
    gate = PaceGate(draw, [1])

    assert [key in gate for key in (1, 2, 3, 2, 3)] == [True, True, False, True, False]
    assert drawn == [2, 3]
    assert (set(gate), len(gate)) == ({1, 2}, 2)


def test_a_campaign_that_could_not_pay_is_left_out_too() -> None:
    draw, _ = count_draws(set())
    gate = PaceGate(draw, [])
    assert 7 not in gate
    gate.add(7)
    assert 7 in gate
