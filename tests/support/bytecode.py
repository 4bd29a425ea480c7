"""Bytecode of a fresh checkout: each worker compiles a part of it, where all of them would compile everything at once.

Half of the time in which a worker finds its tests goes into their assertions, which pytest rewrites.
"""
# pyright: reportPrivateUsage=false

import compileall
import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

TESTS = "test_*.py"
COMPILED = ("src", "simulation", "bench", "tests/support")


def compile_part(config: pytest.Config, part: int, parts: int) -> None:
    """Compile every so-manieth file: the tests that the command names, and, if it names all, what they import."""
    if sys.dont_write_bytecode:
        return
    named = [(config.invocation_params.dir / word.split("::")[0]).resolve() for word in config.args]
    folders = [path for path in named if path.is_dir()]
    for test in sorted({file for folder in folders for file in folder.rglob(TESTS)})[part::parts]:
        _rewrite(config, test)
    if config.rootpath / "tests" in folders:
        others = sorted(file for name in COMPILED for file in (config.rootpath / name).rglob("*.py"))
        for file in others[part::parts]:
            compileall.compile_file(file, quiet=2)


def _rewrite(config: pytest.Config, test: Path) -> None:
    folder = rewrite.get_cache_dir(test)
    place = folder / f"{test.stem}{rewrite.PYC_TAIL}"
    if rewrite.try_makedirs(folder) and rewrite._read_pyc(test, place) is None:  # noqa: SLF001 - has no public name
        digest, code = rewrite._rewrite_test(test, config)  # noqa: SLF001 - likewise
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, place)  # noqa: SLF001 - likewise
