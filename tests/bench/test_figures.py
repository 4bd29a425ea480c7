import math

from bench.figures import SERVE, CpuGoal, compute_figures, compute_share, judge_goals
from bench.load import NGINX, NO_OP, BenchPlan, Load, Sample
from bench.routes.compare import tabulate_comparison
from bench.routes.measure import GOALS


def a_sample(
    target: str, *, cpu_micros: float = 10, requests: int = 1_000, resident_bytes: int = 1
) -> Sample:
    return Sample(
        target=target,
        load=Load(requests=requests, errors=0, seconds=2, p50_micros=100, p99_micros=900),
        cpu_seconds=cpu_micros * requests / 1e6,
        resident_bytes=resident_bytes,
    )


def test_figures_are_medians_of_the_rounds() -> None:
    samples = [
        a_sample(NO_OP, cpu_micros=10, requests=1_000, resident_bytes=5),
        a_sample(NO_OP, cpu_micros=90, requests=9_000, resident_bytes=7),
        a_sample(NO_OP, cpu_micros=12, requests=2_000, resident_bytes=6),
    ]

    (figures,) = compute_figures(samples)

    assert math.isclose(figures.cpu_micros, 12)
    assert figures.requests_per_second == 1_000
    assert figures.resident_bytes == 7
    assert figures.cpu_to_no_op == 1


def test_each_target_is_compared_with_the_no_op_of_the_same_run() -> None:
    samples = [a_sample(NO_OP, cpu_micros=10), a_sample(SERVE, cpu_micros=15), a_sample(NGINX, cpu_micros=5)]

    ratios = {figures.target: figures.cpu_to_no_op for figures in compute_figures(samples)}

    assert {name: round(ratio, 6) for name, ratio in ratios.items()} == {NO_OP: 1, SERVE: 1.5, NGINX: 0.5}


def test_a_share_is_that_of_the_same_round() -> None:
    # The machine is three times as slow from the second round on.
    rounds = [(900, 360), (300, 60), (300, 90)]
    samples = [
        a_sample(target, requests=requests)
        for both in rounds
        for target, requests in zip((NO_OP, SERVE), both, strict=True)
    ]

    assert compute_share(samples, SERVE, NO_OP) == 0.3


def test_a_goal_is_met_up_to_its_bound() -> None:
    figures = compute_figures([a_sample(NO_OP, cpu_micros=10), a_sample(SERVE, cpu_micros=20)])

    (met,) = judge_goals(figures, [CpuGoal(target=SERVE, of=NO_OP, at_most=2.0)])
    (missed,) = judge_goals(figures, [CpuGoal(target=SERVE, of=NO_OP, at_most=1.9)])

    assert met.is_met
    assert not missed.is_met
    assert math.isclose(missed.ratio, 2)


def test_a_goal_about_a_server_that_is_not_installed_is_left_out() -> None:
    figures = compute_figures([a_sample(NO_OP), a_sample(SERVE)])

    assert judge_goals(figures, GOALS) == []


def test_rounds_shorter_than_a_tick_do_not_break_the_ratios() -> None:
    figures = compute_figures([a_sample(NO_OP, cpu_micros=0), a_sample(SERVE)])

    assert figures[1].cpu_to_no_op == math.inf


def test_a_checkout_is_compared_with_another_round_by_round() -> None:
    # The machine is ten times as slow in the second round.
    rounds = [(10, 8), (100, 110), (10, 9)]
    samples = [
        a_sample(f"{side}: {SERVE}", cpu_micros=cpu_micros)
        for pair in rounds
        for side, cpu_micros in zip(("base", "this"), pair, strict=True)
    ]

    table = tabulate_comparison(samples, BenchPlan(seconds=1, rounds=3, connections=1, workers=1))

    [row] = table.rows
    assert row[:3] == [SERVE, "10.0", "9.0"]
    assert row[-2:] == ["0.90", "0.80–1.10"]  # noqa: RUF001 - a range
    assert [goal.is_met for goal in table.goals] == [True]
