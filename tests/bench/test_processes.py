import os
import subprocess
import sys
import time
from collections.abc import Generator

import pytest

from bench.processes import (
    CpuMeter,
    keep_apart,
    keep_off_last_cpu,
    list_descendants,
    measure_usage,
    pin_to_last_cpu,
    read_command_line,
)


def test_the_time_of_a_process_grows_as_it_works() -> None:
    waiting = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE) as ending:
        meter = CpuMeter([os.getpid(), ending.pid])
    before = measure_usage([os.getpid()])
    ends_at = time.process_time() + 0.1
    while time.process_time() < ends_at:
        pass

    after = measure_usage([os.getpid()])

    assert 0.05 < after.cpu_seconds - before.cpu_seconds < 1
    assert 0.05 < meter.read_seconds() < 1
    assert after.resident_bytes > 1_000_000


def test_children_and_their_children_are_found_by_how_they_were_started() -> None:
    grandchild = "import time; time.sleep(60)  # grandchild"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    with subprocess.Popen([sys.executable, "-c", program]) as child:
        ends_at = time.monotonic() + 60
        found: list[int] = []
        while not found and time.monotonic() < ends_at:
            found = [pid for pid in list_descendants(os.getpid()) if grandchild in read_command_line(pid)]
            time.sleep(0.01)

        assert child.pid in list_descendants(os.getpid())
        assert len(found) == 1
        os.kill(found[0], 9)


def test_a_process_that_is_gone_has_no_command_line() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        pass

    assert read_command_line(child.pid) == []


CPUS = os.sched_getaffinity(0)


@pytest.fixture
def sleeper() -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.skipif(len(CPUS) < 2, reason="there is one core for all")
def test_a_server_and_its_client_get_cores_of_their_own(sleeper: subprocess.Popen[bytes]) -> None:
    pin_to_last_cpu(sleeper.pid)
    assert os.sched_getaffinity(sleeper.pid) == {max(CPUS)}

    keep_off_last_cpu(sleeper.pid)
    assert os.sched_getaffinity(sleeper.pid) == CPUS - {max(CPUS)}


def test_a_process_that_is_gone_is_nobody_s_fault(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    sleeper.wait()

    pin_to_last_cpu(sleeper.pid)
    keep_off_last_cpu(sleeper.pid)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is all there is")
def test_what_is_measured_has_the_cores_that_nothing_else_uses() -> None:
    allowed = os.sched_getaffinity(0)
    waiting = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with (
        subprocess.Popen(waiting, stdin=subprocess.PIPE) as measured,
        subprocess.Popen(waiting, stdin=subprocess.PIPE) as other,
    ):
        pids = measured.pid, other.pid
        with keep_apart([measured.pid], [other.pid]):
            assert [os.sched_getaffinity(pid) for pid in pids] == [allowed - {max(allowed)}, {max(allowed)}]
        assert [os.sched_getaffinity(pid) for pid in pids] == [allowed, allowed]
