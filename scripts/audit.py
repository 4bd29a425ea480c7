"""Look for known vulnerabilities in what is installed with the product, and say what could not be looked up.

`pip-audit` asks a service on the internet. Without it nothing is known: that is not the same as nothing found, so it
ends with another code (0: all looked up and nothing found, 1: found, 2: not all looked up).
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements.txt"
COMMAND = (
    "uvx",
    "pip-audit",
    "--disable-pip",
    "--require-hashes",
    "--format",
    "json",
    "--progress-spinner",
    "off",
)
PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)==", re.MULTILINE)
FOUND, NOT_LOOKED_UP = 1, 2


def main(arguments: list[str]) -> int:
    packages = list(dict.fromkeys(PINNED.findall(REQUIREMENTS.read_text(encoding="utf-8"))))
    report, why = run_audit(arguments)
    lines, code = summarize(packages, report, why)
    print("\n".join(lines))
    return code


def run_audit(arguments: list[str]) -> tuple[dict[str, Any] | None, str]:
    """Return what pip-audit reports, or None and why it reports nothing."""
    command = [*COMMAND, "--requirement", str(REQUIREMENTS), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours, and the developer's own
    except OSError as error:
        return None, f"uvx cannot be run: {error}"
    try:
        return json.loads(done.stdout), ""
    except ValueError:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        return None, said[-1] if said else f"pip-audit ended with {done.returncode} and said nothing"


def summarize(packages: list[str], report: dict[str, Any] | None, why: str) -> tuple[list[str], int]:
    """Return what to print, and the code to end with."""
    if report is None:
        return [f"NOT LOOKED UP: none of the {len(packages)} packages. {why}"], NOT_LOOKED_UP
    listed: list[dict[str, Any]] = report["dependencies"]
    looked_up = {one["name"].lower() for one in listed if "skip_reason" not in one}
    # A reason ends with the package, after a colon.
    reasons = {
        one["name"].lower(): one["skip_reason"].partition(":")[0] for one in listed if "skip_reason" in one
    }
    missing: dict[str, list[str]] = {}
    for name in packages:
        if name.lower() not in looked_up:
            missing.setdefault(reasons.get(name.lower(), "not for this platform"), []).append(name)
    found = [
        f"{one['name']} {one['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'no version'}"
        for one in listed
        for flaw in one.get("vulns", ())
    ]
    count = sum(map(len, missing.values()))
    lines = [
        f"Looked up {len(packages) - count} of {len(packages)} packages. Vulnerabilities: {len(found)}.",
        *found,
    ]
    lines += [f"NOT LOOKED UP ({reason}): {', '.join(names)}" for reason, names in missing.items()]
    return lines, FOUND if found else NOT_LOOKED_UP if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
