"""What must hold for the files of `deploy/`. Their schemas are checked by `scripts/manifests.py`."""

import shutil
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from adloom.cli.main import app
from tests.docs.pages import ROOT, SETTINGS

DEPLOY = ROOT / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
LISTENING = {
    "delivery": 8080,
    "control": 8090,
    "worker": 3001,
    "entity": 3001,
    "crawler": 3002,
    "classifier": 3003,
}
PLANES = ("delivery", "control")
EXPOSURE_MAX = 20  # Tenths, of 100: systemd's own figure for how much a service could do.


def resources() -> list[dict[str, Any]]:
    return [
        cast("dict[str, Any]", document)
        for file in MANIFESTS
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
    ]


def pods() -> dict[str, dict[str, Any]]:
    return {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in resources()
        if one["kind"] in {"Deployment", "StatefulSet", "Job"}
    }


def commands() -> set[str]:
    return {str(one.name or getattr(one.callback, "__name__", "")) for one in app.registered_commands}


def documented() -> str:
    return SETTINGS.read_text(encoding="utf-8")


def test_every_pod_runs_without_rights_and_writes_to_volumes_only() -> None:
    for name, pod in pods().items():
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["automountServiceAccountToken"] is False, name
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
        mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
        assert mounted == ["/tmp", "/var/lib/adloom"], name  # noqa: S108 - of its own in each pod
        assert container["args"][0] in commands(), name
        assert container["resources"]["limits"]["memory"], name


def test_every_listening_pod_is_probed_spread_and_never_interrupted_twice_at_once() -> None:
    budgets = {
        one["metadata"]["name"]: one["spec"] for one in resources() if one["kind"] == "PodDisruptionBudget"
    }
    found = pods()

    assert set(budgets) == set(LISTENING)
    for name, port in LISTENING.items():
        pod = found[name]
        (container,) = pod["containers"]
        label = {"app.kubernetes.io/name": "adloom", "app.kubernetes.io/component": name}
        assert [one["containerPort"] for one in container["ports"]] == [port]
        assert container["livenessProbe"]["httpGet"]["path"] == "/health/live"
        assert container["startupProbe"]["httpGet"]["path"] == "/health/live"
        assert container["readinessProbe"]["httpGet"]["path"] == "/health/ready"
        assert (budgets[name]["maxUnavailable"], budgets[name]["selector"]["matchLabels"]) == (1, label)
        assert pod["affinity"]["podAntiAffinity"], name
        assert pod["topologySpreadConstraints"], name
        # Longer than the sleep, the five seconds for requests, and what is appended or spooled after them.
        assert pod["terminationGracePeriodSeconds"] >= 30
        assert ("lifecycle" in container) == (name in PLANES)


def test_all_are_denied_what_is_not_allowed_and_only_workers_reach_nats() -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in resources() if one["kind"] == "NetworkPolicy"}

    assert policies["deny-all"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name, policy in policies.items():
        ports = {port["port"] for rule in policy.get("egress", []) for port in rule["ports"]}
        assert (4222 in ports) == (name == "actors"), name
    (actors,) = policies["actors"]["podSelector"]["matchExpressions"]
    assert actors["values"] == ["worker", "entity"]
    (inward,) = policies["visitors-and-people"]["podSelector"]["matchExpressions"]
    assert set(inward["values"]) == set(PLANES)


def test_what_the_files_set_are_settings_of_the_product() -> None:
    named = {
        name
        for one in resources()
        if one["kind"] in {"ConfigMap", "Secret"}
        for name in {**one.get("data", {}), **one.get("stringData", {})}
    }
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    named |= set(compose["x-adloom"]["environment"])

    assert len(named) > 10
    assert {name for name in named if f"`{name}`" not in documented()} == set()
    kustomization = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text(encoding="utf-8"))
    apart = {"kustomization.yaml", "migrate.yaml", "secrets.example.yaml"}
    assert set(kustomization["resources"]) == {file.name for file in MANIFESTS} - apart


def test_compose_opens_loopback_only_and_drops_all_rights() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    services = cast("dict[str, dict[str, Any]]", compose["services"])

    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:8080:8080", "127.0.0.1:8090:8090"]
    for name, service in services.items():
        if service["image"] == "adloom":
            assert service["command"][0] in commands(), name
            assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"]), name


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_is_what_systemd_understands_and_may_do_little(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    command = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    assert command.split()[1] in commands()
    assert "User=adloom" in text.splitlines()
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze here")
    # It looks for the program and at the other units.
    for file in (DEPLOY / "systemd").iterdir():
        (tmp_path / file.name).write_text(
            file.read_text(encoding="utf-8").replace("/opt/adloom/bin/adloom", "/bin/true"), encoding="utf-8"
        )

    verified = subprocess.run(
        [analyze, "verify", "--man=no", str(tmp_path / unit.name)],
        capture_output=True,
        text=True,
        check=False,
    )
    exposed = subprocess.run(
        [analyze, "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )

    # A container without systemd cannot be asked about anything but the files.
    assert [line for line in verified.stderr.splitlines() if unit.name in line] == []
    assert exposed.returncode == 0, exposed.stdout[-500:]


def test_browsers_stay_with_the_control_that_made_their_page() -> None:
    (service,) = [
        one for one in resources() if one["kind"] == "Service" and one["metadata"]["name"] == "control"
    ]

    assert service["spec"]["sessionAffinity"] == "ClientIP"
