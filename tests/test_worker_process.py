"""Workers have the tests from the process that they were forked from."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fork_server import WORKER
from tests.support.forked import FORKED_COMMAND, fork_server
from tests.support.worker_process import find_tests, import_test


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux passes what a fork needs")
def test_a_worker_is_forked(pytestconfig: pytest.Config) -> None:
    is_worker = hasattr(pytestconfig, "workerinput")

    assert (sys.argv[0] == sys.modules[WORKER].__file__) == is_worker


def test_the_tests_of_folders_and_files_are_found_and_none_of_the_product_in_the_quick_lane() -> None:
    tests = Path(__file__).parent
    drawn, walked = tests / "app" / "test_up_plan.py", tests / "browser" / "test_console_pictures.py"

    everything = find_tests([tests], is_quick=False)
    quick = find_tests([tests, Path(__file__)], is_quick=True)

    assert {drawn, walked, Path(__file__)} <= set(everything)
    assert {drawn, walked, Path(__file__)} & set(quick) == {drawn, Path(__file__)}
    assert len(quick) == len(set(quick))


@pytest.mark.parametrize(
    "line", ["import no_such_module", "import pytest; pytest.skip(allow_module_level=True)", "a b"]
)
def test_what_cannot_be_imported_is_left_to_the_worker(
    line: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    file = tmp_path / "test_that_breaks.py"
    file.write_text(line, encoding="utf-8")

    import_test(file, pytestconfig)
    sys.path.remove(str(tmp_path))

    assert file.stem not in sys.modules


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux passes what a fork needs")
def test_a_forked_program_is_interrupted_with_its_command() -> None:
    words = [sys.executable, "-I", "-S", str(FORKED_COMMAND), fork_server(), "tests.support.sleeper"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as command:
        assert command.stdout
        assert command.stdout.readline() == b"asleep\n"

        command.send_signal(signal.SIGINT)

        assert command.stdout.read() == b"interrupted\n"
        assert command.wait() == 0
