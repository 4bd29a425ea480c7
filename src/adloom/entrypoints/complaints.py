"""Which errors are the user's to mend: these are told in a line, all others with a traceback."""

from adloom.entrypoints.jobs import JobsError
from adloom.entrypoints.ledger_report import LedgerCommandError
from adloom.entrypoints.listeners import ListenError
from adloom.entrypoints.replay import ReplayError
from adloom.entrypoints.schema import DatabaseError
from adloom.entrypoints.sync import SyncCommandError
from adloom.entrypoints.topics import TopicsError
from adloom.reporting.rollup import RollupRefusedError
from adloom.runtime.embedded.identity import UnreachableError
from adloom.runtime.installation import InstallationError
from adloom.runtime.processes.child import StartError
from adloom.runtime.processes.program import ProgramFailedError
from adloom.runtime.settings import SettingsError
from adloom.sample.admin import SampleError

USERS_OWN = (
    DatabaseError,
    InstallationError,
    JobsError,
    LedgerCommandError,
    ListenError,
    ProgramFailedError,
    ReplayError,
    RollupRefusedError,
    SampleError,
    SettingsError,
    StartError,
    SyncCommandError,
    TopicsError,
    UnreachableError,
)


def complaint_of(error: Exception) -> str | None:
    """Word an error that the user can mend; None for the others."""
    return str(error) if isinstance(error, USERS_OWN) else None
