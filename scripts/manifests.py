"""Checks the files of `deploy/` by tools of others: Kubernetes' own schemas, and the Compose specification.

Run it by `just manifests`. The tools are fetched by uv, in the versions below.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

DEPLOY: Final = Path(__file__).resolve().parents[1] / "deploy"
KUBERNETES: Final = "kubernetes-validate==1.37.0"
# The first version whose pods may sleep before they stop, and the newest.
VERSIONS: Final = ("1.30", "1.37")
COMPOSE: Final = "compose-spec==0.2.1"
YAML: Final = "pyyaml==6.0.3"
# YAML's merge keys are resolved first, as every Compose does.
CHECK_COMPOSE: Final = """
import sys, yaml
from compose_spec import PyCompose
print(sorted(PyCompose.from_yaml(yaml.safe_dump(yaml.safe_load(sys.stdin.read()))).service_names()))
"""
# Read by kubectl itself, and no resource.
NO_RESOURCES: Final = {"kustomization.yaml"}


def main() -> None:
    files = [
        str(file) for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")) if file.name not in NO_RESOURCES
    ]
    for version in VERSIONS:
        tool = ["uv", "tool", "run", "--quiet", "--from", KUBERNETES, "kubernetes-validate"]
        _run([*tool, "--strict", "--quiet", "--kubernetes-version", version, *files])
        print(f"{len(files)} files are valid for Kubernetes {version}")
    python = ["uv", "run", "--quiet", "--no-project", "--with", COMPOSE, "--with", YAML, "python"]
    _run([*python, "-c", CHECK_COMPOSE], (DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def _run(command: list[str], text: str | None = None) -> None:
    done = subprocess.run(command, input=text, text=True, check=False)  # noqa: S603 - our own words
    if done.returncode:
        sys.exit(f"{command[0]} {' '.join(command[-3:])} found the above.")


if __name__ == "__main__":
    main()
