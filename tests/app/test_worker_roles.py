"""The roles of a worker: all without NATS, some of them with it."""

import pytest

from adloom.app.actors.compose import make_link
from adloom.budgets.worker import WorkerIdentity
from adloom.runtime.process.roles import NatsSettings, WorkerRole
from adloom.runtime.settings import Secret, SettingsError, read_worker_settings

WORKER = WorkerIdentity("worker@here", "0123456789")
URL = Secret("nats://adloom:password@10.0.0.1:4222")
SERVICES = {"DATABASE_URL": "postgresql://u:p@h/d", "REDIS_URL": "redis://h"}


def test_a_worker_has_all_roles_and_no_nats_by_default() -> None:
    settings = read_worker_settings(SERVICES).nats

    assert (settings.url, set(settings.roles)) == (None, set(WorkerRole))
    assert make_link(settings, WORKER) is None


def test_without_nats_a_worker_cannot_have_some_roles() -> None:
    with pytest.raises(SettingsError, match="ADLOOM_NATS_URL"):
        make_link(NatsSettings(roles=(WorkerRole.ENTITY,)), WORKER)


@pytest.mark.parametrize(
    ("roles", "is_connected"),
    [("projections,jobs", False), ("entity", True), ("singleton, jobs", True)],
)
def test_only_workers_with_actors_or_messages_to_them_connect(roles: str, *, is_connected: bool) -> None:
    settings = read_worker_settings({**SERVICES, "ADLOOM_NATS_URL": URL, "ADLOOM_WORKER_ROLES": roles}).nats

    assert (make_link(settings, WORKER) is not None) is is_connected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ADLOOM_WORKER_ROLES", "entity,cook", "some of entity, singleton, projections, jobs"),
        ("ADLOOM_NATS_URL", "nats://a:4222,http://b", "ADLOOM_NATS_URL"),
        ("ADLOOM_NATS_REPLICAS", "0", "ADLOOM_NATS_REPLICAS"),
    ],
)
def test_a_wrong_setting_is_named(name: str, value: str, expected: str) -> None:
    with pytest.raises(SettingsError, match=expected):
        read_worker_settings({**SERVICES, name: value})
