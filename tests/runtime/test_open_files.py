"""The limit of open files is raised as far as the system allows."""

import subprocess
import sys

import pytest

RAISES_IT = """
import resource, sys
from adloom.runtime.process.tuning import raise_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, (64, int(sys.argv[1])))
print(raise_open_files(), *resource.getrlimit(resource.RLIMIT_NOFILE), raise_open_files())
"""


@pytest.mark.parametrize("hard", [64, 512])
def test_a_process_raises_its_limit_of_open_files_to_the_maximum(hard: int) -> None:
    result = subprocess.run(
        [sys.executable, "-c", RAISES_IT, str(hard)], capture_output=True, text=True, check=True
    )

    assert result.stdout.split() == [str(hard)] * 4
