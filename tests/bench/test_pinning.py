import os
import subprocess
import sys
from collections.abc import Generator

import pytest

from bench.pinning import keep_off_last_cpu, pin_to_last_cpu

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
