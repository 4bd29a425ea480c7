"""Errors that the user can fix: these are printed in one line, all others with a traceback."""

from adloom.app.listeners import ListenError
from adloom.cli.days import SyncCommandError
from adloom.cli.jobs import JobsError
from adloom.cli.ledger_report import LedgerCommandError
from adloom.cli.options import ClassifyCommandError, LearnCommandError
from adloom.cli.replay import ReplayError
from adloom.forecast.changes import MarketChangeError
from adloom.forecast.file.parts import MarketFileError
from adloom.ops.backup.archive import BackupError
from adloom.ops.capacity.coefficients_file import CoefficientsFileError
from adloom.runtime.embedded.binaries import UnreachableError
from adloom.runtime.installation import InstallationError
from adloom.runtime.schema import DatabaseError
from adloom.runtime.settings import SettingsError
from adloom.runtime.supervisor.child import StartError
from adloom.runtime.supervisor.program import ProgramFailedError
from adloom.sample.admin import SampleError
from adloom.stats.rollup import RollupRefusedError

USER_ERRORS = (
    BackupError,
    ClassifyCommandError,
    CoefficientsFileError,
    DatabaseError,
    InstallationError,
    JobsError,
    LearnCommandError,
    LedgerCommandError,
    ListenError,
    MarketChangeError,
    MarketFileError,
    ProgramFailedError,
    ReplayError,
    RollupRefusedError,
    SampleError,
    SettingsError,
    StartError,
    SyncCommandError,
    UnreachableError,
)


def describe_for_user(error: Exception) -> str | None:
    """Return the message of an error that the user can fix; None for others."""
    return str(error) if isinstance(error, USER_ERRORS) else None
