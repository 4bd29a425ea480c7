"""Write the exact version of every package, direct or not, into `[tool.uv]` of pyproject.toml.

A lock file names the addresses of downloads, which differ from one place to the next, so it is not
committed; the versions alone are. Without arguments the versions of the present resolution are written;
with `--upgrade` the newest ones that fit together.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTS = ("constraint-dependencies", "build-constraint-dependencies")
TABLE = re.compile(r"^\[tool\.uv\]\n(?:(?!\[).*\n?)*", re.MULTILINE)
PIN = re.compile(r"^[A-Za-z0-9][\w.-]*==[^\s;]+(?: *;.*)?$")


def main(arguments: list[str]) -> None:
    """Resolve, then rewrite the one table."""
    path = ROOT / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    packages = resolved_anew(text) if "--upgrade" in arguments else resolved(ROOT)
    build_packages = resolved_for_build(tomllib.loads(text)["build-system"]["requires"])
    # Read again: resolving takes a while, and somebody may have written meanwhile.
    text = path.read_text(encoding="utf-8")
    path.write_text(with_pins(text, pins_in(packages), pins_in(build_packages)), encoding="utf-8")
    print(f"Pinned {len(pins_in(packages))} packages, and {len(pins_in(build_packages))} to build with.")


def resolved(project: Path) -> str:
    """Tell what uv resolves the project to, for all platforms."""
    plain = ("--no-hashes", "--no-annotate", "--no-header", "--no-emit-project")
    return _uv("export", *plain, "--all-groups", "--project", str(project))


def resolved_anew(text: str) -> str:
    """Resolve without the present pins, beside the project."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyproject.toml").write_text(with_pins(text, [], []), encoding="utf-8")
        return resolved(Path(folder))


def resolved_for_build(requirements: list[str]) -> str:
    """Resolve what builds the wheel: it is not part of the project's own resolution."""
    plain = ("--universal", "--no-annotate", "--no-header", "--quiet")
    return _uv("pip", "compile", *plain, "-", given="\n".join(requirements))


def pins_in(requirements: str) -> list[str]:
    """Pick the lines that pin a package; anything else but comments is a surprise."""
    lines = [line.strip() for line in requirements.splitlines()]
    pins = [line for line in lines if line and not line.startswith("#")]
    for pin in pins:
        assert PIN.match(pin), f"{pin!r} is no exact version"
    return sorted(pins, key=str.lower)


def with_pins(text: str, pins: list[str], build_pins: list[str]) -> str:
    """Replace both lists of `[tool.uv]`, and touch nothing else."""
    found = TABLE.search(text)
    kept = [] if found is None else _other_settings(found.group())
    lists = zip(LISTS, (pins, build_pins), strict=True)
    table = "\n".join(["[tool.uv]", *kept, *(_as_list(name, entries) for name, entries in lists)]) + "\n"
    if found is None:
        return f"{text.rstrip()}\n\n{table}"
    rest = text[found.end() :]
    return text[: found.start()] + table + ("\n" + rest if rest else "")


def _other_settings(table: str) -> list[str]:
    for name in LISTS:
        # An entry may hold brackets of its own (an extra), so the list ends where a line does.
        table = re.sub(rf"^{name} = \[(?:\]|\n(?:  .*\n)*\])\n?", "", table, flags=re.MULTILINE)
    return [line for line in table.splitlines()[1:] if line.strip()]


def _as_list(name: str, entries: list[str]) -> str:
    if not entries:
        return f"{name} = []"
    return "\n".join([f"{name} = [", *(f'  "{entry}",' for entry in entries), "]"])


def _uv(*arguments: str, given: str | None = None) -> str:
    done = subprocess.run(["uv", *arguments], input=given, capture_output=True, text=True, check=False)  # noqa: S603, S607 - the uv on the path, with our own words
    if done.returncode:
        sys.exit(f"uv {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1:])
