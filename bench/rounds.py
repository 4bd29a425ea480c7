"""Measures in short rounds of all targets in rotation, so that noise affects all alike."""

import contextlib
import itertools
from collections.abc import Callable, Generator, Sequence

import msgspec

from bench.figures import EVENT, NO_OP, SERVE, Sample
from bench.load import Effort, Load, LoadError, Target, find_wrk, run_wrk
from bench.nginx import find_nginx, run_nginx
from bench.processes import measure_usage
from bench.product import run_product

WARM_UP_SECONDS_MAX = 1.0
ERROR_SHARE_MAX = 0.001  # Beyond this we would measure how fast the server rejects requests.

LoadBy = Callable[[Target, Effort], Load]
ShowStatus = Callable[[str], None]


class BenchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure."""

    seconds: float
    rounds: int
    connections: int
    workers: int


class BenchSubject(msgspec.Struct, frozen=True, kw_only=True):
    """A target, and the processes that serve it."""

    target: Target
    pids: list[int]


def measure(plan: BenchPlan, report: ShowStatus) -> list[Sample]:
    find_wrk()
    with run_subjects(plan, report) as subjects:
        return take_samples(subjects, plan, report)


@contextlib.contextmanager
def run_subjects(plan: BenchPlan, report: ShowStatus) -> Generator[list[BenchSubject]]:
    """Start the product, and nginx if it is installed."""
    with contextlib.ExitStack() as stack:
        report("starting the product")
        product = stack.enter_context(run_product(workers=plan.workers))
        targets = [
            Target(name=NO_OP, port=product.port, path="/health/live"),
            Target(name=SERVE, port=product.port, path=product.serve_path),
            Target(name=EVENT, port=product.port, path="/banners/events/impression", body=product.impression),
        ]
        subjects = [BenchSubject(target=target, pids=product.delivery_pids) for target in targets]
        nginx = find_nginx()
        if nginx is not None:
            server = stack.enter_context(run_nginx(nginx))
            subjects.append(BenchSubject(target=server.target, pids=server.pids))
        yield subjects


def take_samples(
    subjects: Sequence[BenchSubject], plan: BenchPlan, report: ShowStatus, *, load_by: LoadBy = run_wrk
) -> list[Sample]:
    """Warm up each target, then measure all in rotation, round by round."""
    serials = itertools.count()

    def effort(seconds: float) -> Effort:
        prefix = f"bench-{next(serials)}-"
        return Effort(connections=plan.connections, seconds=seconds, serial_prefix=prefix)

    for subject in subjects:
        report(f"warming up {subject.target.name}")
        load_by(subject.target, effort(min(plan.seconds, WARM_UP_SECONDS_MAX)))
    samples: list[Sample] = []
    for number in range(1, plan.rounds + 1):
        for subject in subjects:
            report(f"round {number} of {plan.rounds}: {subject.target.name}")
            samples.append(take_sample(subject, effort(plan.seconds), load_by))
    return samples


def take_sample(subject: BenchSubject, effort: Effort, load_by: LoadBy) -> Sample:
    before = measure_usage(subject.pids)
    load = load_by(subject.target, effort)
    after = measure_usage(subject.pids)
    if load.requests == 0 or load.errors > load.requests * ERROR_SHARE_MAX:
        raise LoadError(
            f"{subject.target.name}: {load.errors} errors in {load.requests} requests, nothing to measure."
        )
    return Sample(
        target=subject.target.name,
        load=load,
        cpu_seconds=after.cpu_seconds - before.cpu_seconds,
        resident_bytes=after.resident_bytes,
    )
