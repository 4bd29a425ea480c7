"""Access tokens from the command line, signed with the installation's own secret."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from adloom.core.actor import Actor
from adloom.runtime.auth import issue_access_token
from adloom.runtime.installation import DataDirectory, InstallationError


def access_token(
    variables: Mapping[str, str],
    directory: DataDirectory,
    actor: Actor,
    *,
    now: datetime,
    lifetime: timedelta,
) -> str:
    """Sign a token with the secret that the control plane started from here would use."""
    return issue_access_token(signing_secret(variables, directory), actor, now=now, lifetime=lifetime)


def signing_secret(variables: Mapping[str, str], directory: DataDirectory) -> str:
    """Give the secret that the control plane of an installation signs with."""
    if given := variables.get("JWT_SECRET"):
        return given
    secrets = directory.read_secrets()
    if secrets is None:
        raise InstallationError(
            f"There is no installation in {directory.path}. Start one with `adloom up`, or name its --data-dir."
        )
    return secrets.jwt_secret
