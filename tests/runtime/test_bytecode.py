import os
import subprocess
import sys
from pathlib import Path

from adloom.runtime.process.bytecode import make_bytecode_folder

PROGRAM = """
import os, sys
from adloom.runtime.process.bytecode import keep_bytecode
keep_bytecode(sys.argv[1], os.environ)
import slow_module
print(sys.pycache_prefix, os.environ.get("PYTHONDONTWRITEBYTECODE"), os.environ.get("PYTHONPYCACHEPREFIX"))
"""


def run_where_bytecode_is_forbidden(folder: Path, source: Path) -> list[str]:
    environment = os.environ | {
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPATH": str(folder),
    }
    environment.pop("PYTHONPYCACHEPREFIX", None)
    (folder / "slow_module.py").write_text("", encoding="ascii")
    command = [sys.executable, "-c", PROGRAM, str(source)]
    return subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout.split()


def test_modules_are_compiled_once_although_nothing_may_be_written_beside_them(tmp_path: Path) -> None:
    kept_in = tmp_path / "cache" / "adloom" / "bytecode"

    shown = run_where_bytecode_is_forbidden(tmp_path, tmp_path / "slow_module.py")

    assert shown == [str(kept_in), "None", str(kept_in)]  # For the processes that it starts, too.
    assert [file.name for file in kept_in.rglob("slow_module*.pyc")] != []
    assert not (tmp_path / "__pycache__").exists()


def test_what_was_compiled_at_its_installation_stays_in_use(tmp_path: Path) -> None:
    source = tmp_path / "slow_module.py"
    compiled = tmp_path / "__pycache__" / f"slow_module.{sys.implementation.cache_tag}.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"")

    shown = run_where_bytecode_is_forbidden(tmp_path, source)

    assert shown == ["None", "1", "None"]


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    variables = {"XDG_CACHE_HOME": str(tmp_path)}
    folder = tmp_path / "adloom" / "bytecode"
    assert make_bytecode_folder(variables) == folder

    folder.chmod(0o777)

    assert make_bytecode_folder(variables) is None


def test_without_a_place_for_the_folder_there_is_none(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")

    assert make_bytecode_folder({"XDG_CACHE_HOME": str(file)}) is None
