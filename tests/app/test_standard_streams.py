"""Standard streams that are closed or not read: the product continues, and logs go to no other file."""

import subprocess
import sys

WRITES_AFTER_CLOSE = """
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
OPENS_A_FILE = """
import contextlib, os, sys
from adloom.cli.main import main
with contextlib.suppress(SystemExit):
    main()
print(sys.stdin.read(), file=sys.stderr, flush=True)
os._exit(os.open("/dev/null", os.O_RDONLY))
"""


def test_output_that_is_not_read_is_discarded() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITES_AFTER_CLOSE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()

        _, stderr = process.communicate(b"go\n")

    assert (process.returncode, stderr) == (0, b"still there")


def test_the_numbers_of_closed_streams_are_not_used_for_other_files() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" --help <&- >&- 2>&-', sys.executable, OPENS_A_FILE],
        check=False,
        close_fds=True,
    )

    assert done.returncode == 3
