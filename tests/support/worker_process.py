"""A worker of a run of tests, forked from a process that has imported the tests (see `fork_server`).

Importing takes half of the processor time in which a worker finds its tests, and a run has twice as many workers as
processors. What a module computes when it is imported is the same in all of them.
"""

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from _pytest.config import _prepareconfig, apply_warning_filters  # pyright: ignore[reportPrivateUsage]
from _pytest.python import importtestmodule

from tests.support.bytecode import TESTS, compile_part

# What execnet passes to an interpreter, behind our own words.
WORDS_OF_EXECNET = 3


@functools.cache
def load(words: tuple[str, ...]) -> None:
    """Import the tests that pytest's arguments name, in the process that is forked."""
    arguments = words[:-WORDS_OF_EXECNET]
    config = _prepareconfig(list(arguments), None)
    from tests.support.examples import choose_examples, prepare_examples  # noqa: PLC0415 - pytest first prepares plugins

    try:
        choose_examples(is_quick=bool(config.getoption("quick")))
        compile_all(config)
        with warnings.catch_warnings():
            apply_warning_filters(
                config.getini("filterwarnings"), config.known_args_namespace.pythonwarnings or ()
            )
            named = [Path(word.split("::")[0]).resolve() for word in config.args]
            for file in find_tests(named, is_quick=bool(config.getoption("quick"))):
                import_test(file, config)
        prepare_examples()
        if config.rootpath / "tests" in named:
            describe_api()
    finally:
        config._ensure_unconfigure()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no session ends here


def describe_api() -> None:
    """Describe the API where all tests run: each worker has some that need it, and it takes 2 s."""
    from adloom.app.control import build_openapi_document  # noqa: PLC0415 - most workers run a few tests

    build_openapi_document()


def compile_all(config: pytest.Config) -> None:
    """Compile what is not, on all cores."""
    parts = os.cpu_count() or 1
    children: list[int] = []
    for part in range(parts):
        if child := os.fork():
            children.append(child)
            continue
        try:
            compile_part(config, part, parts)
        finally:
            os._exit(0)
    for child in children:
        with contextlib.suppress(ChildProcessError):  # The process that forks asks nobody how it ended.
            os.waitpid(child, 0)


def find_tests(named: Iterable[Path], *, is_quick: bool) -> Sequence[Path]:
    """Return the files of tests in folders, and files, that are named; the quick lane has none of the real product."""
    from tests.support.shared_products import is_of_product  # noqa: PLC0415 - pytest first prepares its plugins

    files = {file for path in named for file in (path.rglob(TESTS) if path.is_dir() else [path])}
    return sorted(file for file in files if not (is_quick and is_of_product(file)))


def import_test(file: Path, config: pytest.Config) -> None:
    """Import a test if that is possible; if not, the workers report it."""
    try:
        importtestmodule(file, config)
    except (Exception, pytest.skip.Exception):  # noqa: BLE001 - whatever a module raises
        return


def main() -> None:
    """Become a worker, as execnet's own command does."""
    exec(eval(sys.stdin.readline()), {"__name__": "__main__"})  # noqa: S102, S307 - that is its protocol
