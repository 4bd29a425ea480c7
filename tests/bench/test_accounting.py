import os
import subprocess
import sys
import time

from bench.accounting import (
    PAGE_BYTES,
    TICKS_PER_SECOND,
    command_line,
    descendants,
    parsed_stat,
    usage_of,
)


def test_a_name_with_spaces_and_parentheses_does_not_shift_the_fields() -> None:
    before = "S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0 99 1000000 321 18446744073709551615 0"

    usage = parsed_stat(f"4242 (a ) (b) {before}\n")

    assert usage.cpu_seconds == 300 / TICKS_PER_SECOND
    assert usage.resident_bytes == 321 * PAGE_BYTES


def test_the_time_of_a_process_grows_as_it_works() -> None:
    before = usage_of([os.getpid()])
    ends_at = time.process_time() + 0.1
    while time.process_time() < ends_at:
        pass

    after = usage_of([os.getpid()])

    assert 0.05 < after.cpu_seconds - before.cpu_seconds < 1
    assert after.resident_bytes > 1_000_000


def test_children_and_their_children_are_found_by_how_they_were_started() -> None:
    grandchild = "import time; time.sleep(60)  # grandchild"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    with subprocess.Popen([sys.executable, "-c", program]) as child:
        ends_at = time.monotonic() + 10
        found: list[int] = []
        while not found and time.monotonic() < ends_at:
            found = [pid for pid in descendants(os.getpid()) if grandchild in command_line(pid)]
            time.sleep(0.01)

        assert child.pid in descendants(os.getpid())
        assert len(found) == 1
        os.kill(found[0], 9)


def test_a_process_that_is_gone_has_no_command_line() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        pass

    assert command_line(child.pid) == []
