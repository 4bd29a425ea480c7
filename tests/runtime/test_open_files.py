"""The limit of open files is raised as far as the system allows."""

import subprocess
import sys

import pytest

RAISES_IT = """
import resource, sys
from adloom.runtime.process.tuning import count_connections_max, raise_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, (64, int(sys.argv[1])))
print(raise_open_files(), *resource.getrlimit(resource.RLIMIT_NOFILE), raise_open_files(), count_connections_max())
"""


@pytest.mark.parametrize(("hard", "connections"), [(64, 32), (512, 256), (1_024, 768)])
def test_a_process_raises_its_limit_of_open_files_and_keeps_some_for_itself(
    hard: int, connections: int
) -> None:
    result = subprocess.run(
        [sys.executable, "-c", RAISES_IT, str(hard)], capture_output=True, text=True, check=True
    )

    assert result.stdout.split() == [*[str(hard)] * 4, str(connections)]
