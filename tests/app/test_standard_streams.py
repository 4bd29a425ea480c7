"""Streams that are closed, or that nobody reads: the product goes on, and logs go nowhere else."""

import subprocess
import sys

SAYS_MORE_THAN_IS_READ = """
import sys
from adloom.app.progress import StepProgress
progress = StepProgress()
sys.stdin.readline()
with progress.step("First"):
    pass
progress.print_line("Second")
progress.print_ready("ready")
sys.stderr.write("still there")
"""
TELLS_WHAT_IS_OPEN = """
import contextlib, os, sys
from adloom.cli.main import main
with contextlib.suppress(SystemExit):
    main()
print(sys.stdin.read(), file=sys.stderr, flush=True)
os._exit(os.open("/dev/null", os.O_RDONLY))
"""


def test_output_that_is_not_read_is_discarded() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SAYS_MORE_THAN_IS_READ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()

        _, said = process.communicate(b"go\n")

    assert (process.returncode, said) == (0, b"still there")


def test_closed_streams_do_not_lend_their_numbers_to_other_files() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" --help <&- >&- 2>&-', sys.executable, TELLS_WHAT_IS_OPEN],
        check=False,
        close_fds=True,
    )

    assert done.returncode == 3
