"""Turns samples into figures: medians over the rounds, ratios to the no-op, goals met or not."""

from collections.abc import Sequence
from statistics import median
from typing import Final

import msgspec

from bench.load import Load

NO_OP: Final = "no-op"
SERVE: Final = "serve"
EVENT: Final = "event"
NGINX: Final = "nginx static"


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One round of one target: the client's view, and the server's usage."""

    target: str
    load: Load
    cpu_seconds: float
    resident_bytes: int


class TargetFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One target over all rounds."""

    target: str
    requests_per_second: float
    p50_micros: float
    p99_micros: float
    cpu_micros: float
    cpu_to_no_op: float
    resident_bytes: int


class CpuGoal(msgspec.Struct, frozen=True, kw_only=True):
    """The most server CPU a target may use, as a multiple of another's."""

    target: str
    of: str
    at_most: float


class CpuVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a goal is met."""

    goal: CpuGoal
    ratio: float
    is_met: bool


GOALS: Final = (
    CpuGoal(target=SERVE, of=NO_OP, at_most=2.0),
    CpuGoal(target=NO_OP, of=NGINX, at_most=2.5),
)


def compute_figures(samples: Sequence[Sample]) -> list[TargetFigures]:
    """Summarize the rounds of each target, in order of first appearance."""
    names = list(dict.fromkeys(sample.target for sample in samples))
    rounds = {name: [sample for sample in samples if sample.target == name] for name in names}
    no_op_micros = median(map(_compute_cpu_micros, rounds[NO_OP]))
    return [_summarize(name, rounds[name], no_op_micros) for name in names]


def compute_share(samples: Sequence[Sample], target: str, of: str) -> float:
    """Return a target's throughput as a share of another's: the median over rounds, since machine speed varies."""
    rates = {
        name: [sample.load.requests / sample.load.seconds for sample in samples if sample.target == name]
        for name in (target, of)
    }
    return median(part / whole for part, whole in zip(rates[target], rates[of], strict=True))


def judge_goals(figures: Sequence[TargetFigures], goals: Sequence[CpuGoal] = GOALS) -> list[CpuVerdict]:
    """Judge the goals if both of their targets were measured."""
    micros = {each.target: each.cpu_micros for each in figures}
    return [
        CpuVerdict(goal=goal, ratio=ratio, is_met=ratio <= goal.at_most)
        for goal in goals
        if goal.target in micros and goal.of in micros
        for ratio in [_divide(micros[goal.target], micros[goal.of])]
    ]


def _summarize(name: str, rounds: Sequence[Sample], no_op_micros: float) -> TargetFigures:
    cpu_micros = median(map(_compute_cpu_micros, rounds))
    return TargetFigures(
        target=name,
        requests_per_second=median(sample.load.requests / sample.load.seconds for sample in rounds),
        p50_micros=median(sample.load.p50_micros for sample in rounds),
        p99_micros=median(sample.load.p99_micros for sample in rounds),
        cpu_micros=cpu_micros,
        cpu_to_no_op=_divide(cpu_micros, no_op_micros),
        resident_bytes=max(sample.resident_bytes for sample in rounds),
    )


def _compute_cpu_micros(sample: Sample) -> float:
    return sample.cpu_seconds / sample.load.requests * 1e6


def _divide(part: float, whole: float) -> float:
    # Rounds of milliseconds can be shorter than a tick of the CPU clock.
    return part / whole if whole else float("inf")
