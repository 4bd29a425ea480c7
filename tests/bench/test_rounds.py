import os
import shutil

import pytest

from bench.load import BenchPlan, BenchSubject, Effort, Load, Target, run_wrk, take_samples
from bench.processes import LoadError, measure_usage
from bench.servers import filter_environment, find_nginx, run_nginx

PLAN = BenchPlan(seconds=0.2, rounds=2, connections=3, workers=1)


def subjects(*names: str) -> list[BenchSubject]:
    return [BenchSubject(target=Target(name=name, port=1, path="/"), pids=[os.getpid()]) for name in names]


class RecordedLoad:
    def __init__(self, *, errors: int = 0) -> None:
        self.efforts: list[Effort] = []
        self.targets: list[str] = []
        self._errors = errors

    def __call__(self, target: Target, effort: Effort) -> Load:
        self.efforts.append(effort)
        self.targets.append(target.name)
        return Load(requests=1_000, errors=self._errors, seconds=effort.seconds, p50_micros=1, p99_micros=2)


def test_targets_take_turns_after_all_are_warm() -> None:
    load_by = RecordedLoad()

    samples = take_samples(subjects("a", "b"), PLAN, lambda _step: None, load_by=load_by)

    assert load_by.targets == ["a", "b"] + ["a", "b"] * 2
    assert [sample.target for sample in samples] == ["a", "b", "a", "b"]


def test_no_round_repeats_the_serials_of_another() -> None:
    load_by = RecordedLoad()

    take_samples(subjects("a", "b"), PLAN, lambda _step: None, load_by=load_by)

    assert len({effort.serial_prefix for effort in load_by.efforts}) == 6


def test_a_target_that_refuses_is_not_measured() -> None:
    with pytest.raises(LoadError, match="a: 2 errors in 1000 requests"):
        take_samples(subjects("a"), PLAN, lambda _step: None, load_by=RecordedLoad(errors=2))


def test_the_product_is_measured_as_it_comes() -> None:
    variables = {"PATH": "/bin", "DATABASE_URL": "x", "RATE_LIMIT_PERMITS_PER_MINUTE": "1", "ADLOOM_X": "1"}

    assert filter_environment(variables) == {"PATH": "/bin"}


@pytest.mark.skipif(find_nginx() is None or not shutil.which("wrk"), reason="needs nginx and wrk")
def test_nginx_answers_and_its_time_is_counted() -> None:
    program = find_nginx()
    assert program is not None
    with run_nginx(program) as nginx:
        before = measure_usage(nginx.pids)

        load = run_wrk(nginx.target, Effort(connections=2, seconds=0.3, serial_prefix=""))

        assert load.requests > 100
        assert load.errors == 0
        assert measure_usage(nginx.pids).cpu_seconds > before.cpu_seconds
        assert len(nginx.pids) == 2, "a master and one worker"
