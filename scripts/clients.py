"""Make clients from the API's description, as strangers would, and check it by spectral's rules.

    uv run just clients

The generators run in environments of their own (`uvx`, `npx`), so the product does not depend on them.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from adloom.app.control import build_openapi_document

RULESET = 'extends: ["spectral:oas"]\n'
# By the name of each program: how it is brought here if it is not installed, and what it is told.
PROGRAMS = {
    "openapi-python-client": (
        ("uvx", "--from", "openapi-python-client==0.29.1", "openapi-python-client"),
        ("generate", "--path", "openapi.json", "--output-path", "python", "--fail-on-warning"),
    ),
    "openapi-typescript": (
        (
            *("npx", "--yes", "-p", "typescript@5.9.3", "-p", "openapi-typescript@7.13.0"),
            "openapi-typescript",
        ),
        ("openapi.json", "--output", "client.ts"),
    ),
    "spectral": (
        ("npx", "--yes", "-p", "@stoplight/spectral-cli@6.16.3", "spectral"),
        ("lint", "openapi.json", "--ruleset", "ruleset.yml", "--fail-severity", "warn"),
    ),
}


def main() -> None:
    """Run all programs, and fail if one of them has something to say."""
    missing = {command[0] for command, _ in PROGRAMS.values() if shutil.which(command[0]) is None}
    if missing:
        sys.exit(f"{' and '.join(sorted(missing))} cannot be run: install uv, and Node.js with npm.")
    with tempfile.TemporaryDirectory(prefix="adloom-clients-") as folder:
        said = {name: run_program(name, Path(folder)) for name in PROGRAMS}
    for name, objection in said.items():
        print(f"{name}: {objection or 'nothing to object to'}")
    sys.exit(any(said.values()))


def run_program(name: str, folder: Path) -> str:
    """Run a program on the description in a folder, and return what it has to object to."""
    (folder / "openapi.json").write_text(json.dumps(build_openapi_document()), encoding="utf-8")
    (folder / "ruleset.yml").write_text(RULESET, encoding="utf-8")
    bring, arguments = PROGRAMS[name]
    installed = shutil.which(name)
    command = [*((installed,) if installed else bring), *arguments]
    done = subprocess.run(  # noqa: S603 - the generators, and our own words
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    text = done.stdout + done.stderr
    return text if done.returncode or "warning" in text.lower() else ""


if __name__ == "__main__":
    main()
