"""The commands as a user types them."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from typer.testing import CliRunner

from adloom.app.listeners import get_port, listen
from adloom.cli.main import app
from adloom.cli.token import print_token
from adloom.cli.where import InstalledPart, where
from adloom.core.caller import Role
from adloom.core.errors import UnauthenticatedError
from adloom.runtime.auth.access_token import verify_access_token
from adloom.runtime.installation import DataDirectory, Installation, InstallationError, Secrets, make_secrets
from adloom.runtime.schema import DatabaseError
from tests.support.product import adloom

ACCOUNT = UUID("0193b0a0-0000-7000-8000-000000000001")


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    secrets = make_secrets()
    DataDirectory(tmp_path).write_secrets(secrets)
    return secrets


def an_installation() -> Installation:
    return Installation(
        version="1",
        pid=1,
        started_at=now(),
        host="0.0.0.0",  # noqa: S104 - nothing listens there
        control_host="10.0.0.7",
        delivery_port=18080,
        control_port=18090,
        worker_port=13001,
    )


def now() -> datetime:
    return datetime.now(UTC)


@pytest.mark.slow
def test_the_token_command_prints_only_a_token_with_its_role(tmp_path: Path, secrets: Secrets) -> None:
    with DataDirectory(tmp_path).lock():  # As while it runs.
        done = adloom("token", "--role", "admin", "--data-dir", str(tmp_path))

    assert done.code == 0
    assert done.err == ""
    assert verify_access_token(secrets.jwt_secret, done.out.strip(), now=now()).caller.role is Role.ADMIN


def test_a_token_of_an_installation_that_does_not_run_says_whose_it_is(
    tmp_path: Path, secrets: Secrets, capsys: pytest.CaptureFixture[str]
) -> None:
    print_token(Role.ADMIN, data_dir=tmp_path)

    said = capsys.readouterr()
    assert verify_access_token(secrets.jwt_secret, said.out.strip(), now=now())
    assert str(tmp_path) in said.err


def test_a_token_acts_for_the_given_account(
    tmp_path: Path, secrets: Secrets, capsys: pytest.CaptureFixture[str]
) -> None:
    print_token(Role.PUBLISHER, account=ACCOUNT, data_dir=tmp_path)

    caller = verify_access_token(secrets.jwt_secret, capsys.readouterr().out.strip(), now=now()).caller
    assert (caller.role, caller.account_id) == (Role.PUBLISHER, ACCOUNT)


def test_a_token_ends_after_a_day_unless_more_is_asked_for(
    tmp_path: Path, secrets: Secrets, capsys: pytest.CaptureFixture[str]
) -> None:
    print_token(Role.ADMIN, data_dir=tmp_path)
    token = capsys.readouterr().out.strip()

    assert verify_access_token(secrets.jwt_secret, token, now=now() + timedelta(hours=23, minutes=59))
    with pytest.raises(UnauthenticatedError):
        verify_access_token(secrets.jwt_secret, token, now=now() + timedelta(hours=24, minutes=1))


def test_a_token_without_an_account_acts_for_a_new_one_that_is_printed(
    tmp_path: Path, secrets: Secrets, capsys: pytest.CaptureFixture[str]
) -> None:
    print_token(Role.ADVERTISER, data_dir=tmp_path)

    printed = capsys.readouterr()
    caller = verify_access_token(secrets.jwt_secret, printed.out.strip(), now=now()).caller
    assert str(caller.account_id) in printed.err


@pytest.mark.slow
def test_the_token_command_without_an_installation_says_how_to_make_one(tmp_path: Path) -> None:
    done = adloom("token", "--role", "admin", "--data-dir", str(tmp_path / "nowhere"))

    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "adloom up" in done.err


@pytest.mark.parametrize("url", ["ads", "mysql://u@db/ads", "postgresql://h:port/x"])
def test_an_address_that_is_none_of_a_database_is_refused_with_its_variable(url: str) -> None:
    done = CliRunner().invoke(app, ["token", "list"], env={"DATABASE_URL": url})

    assert isinstance(done.exception, InstallationError)
    assert str(done.exception) == "DATABASE_URL must be an address like postgres://host/…."


@pytest.mark.parametrize("command", [("list",), ("revoke", str(ACCOUNT))])
def test_tokens_of_a_database_that_is_down_are_not_listed_with_a_trace(command: tuple[str, ...]) -> None:
    variables = {"DATABASE_URL": "postgresql://u@127.0.0.1:1/ads"}

    done = CliRunner().invoke(app, ["token", *command], env=variables)

    assert isinstance(done.exception, DatabaseError)
    assert "'ads' at 127.0.0.1:1 cannot be used: " in str(done.exception)


def test_a_command_that_is_refused_loads_no_models_of_pydantic(tmp_path: Path) -> None:
    """From version 0.29 on Typer loads them to read an option: a tenth of a second, and 6 MB while `adloom up` runs."""
    script = (
        "import sys; from adloom.cli.main import main\ntry: main()\nfinally: print('pydantic' in sys.modules)"
    )
    command = [sys.executable, "-c", script, "token", "list", "--data-dir", str(tmp_path)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert "There is no installation" in done.stderr
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("part", "address"),
    [
        ("delivery", "http://127.0.0.1:18080"),
        ("control", "http://10.0.0.7:18090"),
        ("worker", "http://10.0.0.7:13001"),
    ],
)
def test_where_prints_the_address_of_a_listener(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], part: str, address: str
) -> None:
    DataDirectory(tmp_path).write_installation(an_installation())
    with DataDirectory(tmp_path).lock():  # As while it runs.
        where(InstalledPart(part), data_dir=tmp_path)

    said = capsys.readouterr()
    assert (said.out, said.err) == (f"{address}\n", "")


@pytest.mark.slow
def test_a_variable_names_the_data_directory_of_every_command(tmp_path: Path) -> None:
    variables = {"ADLOOM_DATA_DIR": str(tmp_path)}
    nothing = adloom("where", "data", variables=variables)
    DataDirectory(tmp_path).write_installation(an_installation())

    stopped = adloom("where", "data", variables=variables)
    other = adloom("where", "data", "--data-dir", str(tmp_path / "other"), variables=variables)

    assert (nothing.code, nothing.err.count("\n"), "adloom up" in nothing.err) == (1, 1, True)
    assert (stopped.code, stopped.out) == (0, f"{tmp_path}\n")
    assert "does not run now" in stopped.err
    assert (other.code, "other" in other.err) == (1, True)


@pytest.mark.slow
def test_a_dotenv_file_is_read_if_a_variable_names_it(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"JWT_SECRET={'s' * 40}\n")

    done = adloom("token", "--role", "viewer", "--data-dir", "nowhere", cwd=tmp_path, env_file=".env")

    assert verify_access_token("s" * 40, done.out.strip(), now=now()).caller.role is Role.VIEWER


@pytest.mark.slow
def test_only_up_reads_the_dotenv_file_of_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"JWT_SECRET={'s' * 40}\nADLOOM_LOG_LEVEL=nonsense\n")

    token = adloom("token", "--role", "viewer", "--data-dir", "nowhere", cwd=tmp_path)
    up = adloom("up", "--data-dir", str(tmp_path / "data"), "--delivery-port", "0", cwd=tmp_path)
    missing = adloom("doctor", cwd=tmp_path, env_file="nowhere.env")

    assert (token.code, "no installation" in token.err) == (1, True)
    assert (up.code, "ADLOOM_LOG_LEVEL" in up.err) == (1, True)
    assert (missing.code, missing.err.count("\n"), "nowhere.env" in missing.err) == (1, 1, True)


@pytest.mark.slow
def test_serve_names_every_variable_that_is_missing() -> None:
    done = adloom("serve")

    assert done.code == 1
    assert "Traceback" not in done.err
    assert all(name in done.err for name in ("DATABASE_URL", "REDIS_URL", "ADLOOM_TOKEN_SECRET"))


@pytest.mark.slow
def test_the_worker_names_the_missing_variable() -> None:
    done = adloom("worker")

    assert done.code == 1
    assert "Traceback" not in done.err
    assert "DATABASE_URL" in done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "variable"), [("worker", "WORKER_PORT"), ("crawler", "ADLOOM_CRAWLER_PORT")]
)
def test_a_taken_port_of_a_process_is_named_without_a_trace(command: str, variable: str) -> None:
    servers = {"DATABASE_URL": "postgresql://u@127.0.0.1:1/ads", "REDIS_URL": "redis://127.0.0.1:1/0"}
    with listen("127.0.0.1", 0, count=1) as [taken]:
        port = get_port(taken)
        done = adloom(command, variables={**servers, variable: str(port)})

    assert done.code == 1
    assert f"adloom: Port {port} on 127.0.0.1 is in use by another program." in done.err
    assert "Traceback" not in done.err
    assert "process_failed" not in done.err


@pytest.mark.slow
def test_the_whole_api_is_one_document() -> None:
    done = CliRunner().invoke(app, ["openapi"])

    document = json.loads(done.stdout)
    assert "/admin/placements" in document["paths"]
    assert "/banners/serve/{slug}" in document["paths"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "option"), [("up", "--empty"), ("bench", "--json"), ("simulate", "--seed")]
)
def test_a_command_explains_its_options(command: str, option: str) -> None:
    done = adloom(command, "--help")

    assert done.code == 0
    assert option in done.out


@pytest.mark.slow
def test_an_unknown_simulation_names_all_that_there_are() -> None:
    done = adloom("simulate", "markets")

    assert done.code == 2
    assert all(name in done.err for name in ("'ledger'", "'budgets'", "'contextual'", "'market'"))


def test_help_cuts_nothing_at_80_columns() -> None:
    columns = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}
    of_all = CliRunner(env=columns).invoke(app, ["--help"]).stdout
    of_up, of_ledger = (
        CliRunner(env=columns).invoke(app, [name, "--help"]).stdout for name in ("up", "ledger")
    )

    for text in (of_all, of_up, of_ledger):
        assert "…" not in text
        assert "..." not in text.replace("[ARGS]...", "")
        assert max(map(len, text.splitlines())) <= 80
    for name in ("ADLOOM_DELIVERY_PORT", "ADLOOM_CONTROL_PORT", "ADLOOM_CONTROL_HOST", "ADLOOM_SERVER_PORTS"):
        assert name in of_up
    assert "--no-server-ports" in of_up


@pytest.mark.slow
@pytest.mark.parametrize("command", ["up", "control"])
def test_api_port_is_read_as_the_port_of_control(command: str) -> None:
    # No machine has such a port, so the command ends before anything starts.
    done = adloom(command, variables={"API_PORT": "70000"})

    assert done.code == 2
    assert "API_PORT" in done.err


@pytest.mark.slow
def test_our_own_name_of_the_port_comes_before_api_port_and_control_names_the_missing_variable() -> None:
    done = adloom("control", variables={"API_PORT": "70000", "ADLOOM_CONTROL_PORT": "8090"})

    assert done.code == 1
    assert "Traceback" not in done.err
    assert "DATABASE_URL" in done.err
