"""Reading variables of the environment: each with what was expected of it, and all that is wrong told at once."""

import os
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from adloom.runtime.installation import default_data_directory
from adloom.runtime.jobs.cron import Cron, CronError
from adloom.runtime.network_file import NetworkFileError, networks_in

Network = IPv4Network | IPv6Network

SECRET_CHARACTERS_MIN: Final = 32


class Secret(str):
    """A text that does not show itself when the struct around it is printed or logged."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'…'"


class SettingsError(Exception):
    """The environment is not usable; the message names every variable that is wrong."""


class Environment:
    """Reads variables, and collects what is wrong with them instead of stopping at the first."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._problems: list[str] = []

    def checked(self) -> None:
        """Raise if anything that was read is wrong."""
        if self._problems:
            raise SettingsError("\n".join(self._problems))

    def text(self, name: str, default: str | None = None) -> str:
        """Read a text that must be there, unless it has a default."""
        value = self._variables.get(name, "") or default
        if value is None:
            self._problems.append(f"{name} is not set.")
            return ""
        return value

    def optional(self, name: str) -> str | None:
        """Read a text that may be absent."""
        return self._variables.get(name) or None

    def integer(self, name: str, default: int, *, least: int, most: int) -> int:
        """Read a whole number between two bounds."""
        value = self.optional_integer(name, least=least, most=most)
        return default if value is None else value

    def optional_integer(self, name: str, *, least: int, most: int) -> int | None:
        """Read a whole number between two bounds that may be absent."""
        value = self._variables.get(name)
        if not value:
            return None
        expected = f"a whole number from {least} to {most}"
        try:
            number = int(value)
        except ValueError:
            self._wrong(name, value, expected)
            return least
        if not least <= number <= most:
            self._wrong(name, value, expected)
        return number

    def share(self, name: str, default: float) -> float:
        """Read a share of a whole, from 0 to 1."""
        value = self._variables.get(name)
        if not value:
            return default
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number <= 1:
            self._wrong(name, value, "a number from 0 to 1")
            return default
        return number

    def path(self, name: str, *, in_data_directory: str) -> Path:
        """Read a path; by default one in the data directory of this user."""
        value = self._variables.get(name)
        if value:
            return Path(value).absolute()
        return default_data_directory(self._variables, is_root=os.geteuid() == 0) / in_data_directory

    def choice(self, name: str, default: str, *, among: frozenset[str]) -> str:
        """Read one of a few words."""
        value = self.text(name, default)
        if value not in among:
            self._wrong(name, value, f"one of {', '.join(sorted(among))}")
        return value

    def url(self, name: str, default: str | None = None, *, schemes: frozenset[str]) -> str:
        """Read an address with one of some schemes and a host."""
        value = self.text(name, default)
        if value and not _is_url(value, schemes):
            # An address may carry a password, so the value is not repeated here.
            self._problems.append(f"{name} must be an address like {min(schemes)}://host/….")
        return value

    def secret(self, name: str) -> Secret:
        """Read a secret; its value is never repeated in a message."""
        value = Secret(self.text(name))
        if value and len(value) < SECRET_CHARACTERS_MIN:
            self._problems.append(
                f"{name} is too short: it needs at least {SECRET_CHARACTERS_MIN} characters."
            )
        return value

    def secrets(self, name: str) -> tuple[Secret, ...]:
        """Read secrets separated by commas; none of them is repeated in a message."""
        values = tuple(Secret(word.strip()) for word in self.text(name, " ").split(",") if word.strip())
        if any(len(value) < SECRET_CHARACTERS_MIN for value in values):
            self._problems.append(
                f"{name} needs at least {SECRET_CHARACTERS_MIN} characters for each secret."
            )
        return values

    def networks(self, name: str) -> tuple[Network, ...]:
        """Read addresses and networks, separated by commas; there may be none."""
        networks: list[Network] = []
        for word in self._variables.get(name, "").replace(",", " ").split():
            try:
                networks.append(ip_network(word, strict=False))
            except ValueError:
                self._wrong(name, word, "addresses or networks like 10.0.0.0/8, separated by commas")
        return tuple(networks)

    def network_file(self, name: str) -> tuple[Network, ...]:
        """Read the networks in a file, one a line; there may be no file."""
        path = self._variables.get(name, "")
        try:
            return networks_in(Path(path)) if path else ()
        except NetworkFileError as error:
            self._wrong(name, path, f"a file with a network like 192.0.2.0/24 a line, but {error}")
            return ()

    def cron(self, name: str, default: str) -> Cron:
        """Read a cron expression."""
        value = self.text(name, default)
        try:
            return Cron(value)
        except CronError as error:
            self._wrong(name, value, f"a cron expression of five fields like '*/5 * * * *', but {error}")
            return Cron(default)

    def _wrong(self, name: str, value: str, expected: str) -> None:
        self._problems.append(f"{name} is {value!r}: expected {expected}.")


def _is_url(value: str, schemes: frozenset[str]) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme in schemes and bool(parts.netloc)
