"""What a setting is: its variable, how its text is parsed, and what is said of a wrong value."""

import re
from collections.abc import Callable, Mapping
from urllib.parse import SplitResult, urlsplit

import msgspec

from adloom.core.errors import CommandError


class Secret(str):
    """A text that does not show itself when the struct around it is printed or logged."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'…'"


class SettingsError(CommandError):
    """The environment is not usable; the message names every variable that is wrong."""


class SettingValueError(ValueError):
    """One wrong value: what was expected, and which part of the value is wrong if not all of it."""

    def __init__(self, expected: str, part: str | None = None) -> None:
        super().__init__(expected)
        self.part = part


class SecretValueError(ValueError):
    """A wrong value that must not be repeated; the message follows the variable's name."""


class Variable(msgspec.Struct, frozen=True):
    """Where a field comes from; a default that depends on other variables is made from all of them."""

    name: str
    parse: Callable[[str], object] = str
    default: Callable[[Mapping[str, str]], object] | None = None


def parse_within(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not least <= number <= most:
            raise SettingValueError(f"a whole number from {least} to {most}")
        return number

    return parse


def parse_share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise SettingValueError("a number from 0 to 1")
    return share


def parse_one(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise SettingValueError(f"one of {', '.join(sorted(words))}")
        return text

    return parse


def parse_match(pattern: str, expected: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise SettingValueError(expected)
        return text

    return parse


def parse_switch(text: str) -> bool:
    return parse_one("on", "off")(text) == "on"


def _names_socket(parts: SplitResult) -> bool:
    """Whether an address without a host has a unix socket instead: PostgreSQL's is in the query."""
    if parts.scheme == "unix":
        return parts.path.startswith("/")
    return parts.scheme.startswith("postgres") and "host=" in parts.query


def _has_readable_hosts(url: str) -> bool:
    """Whether each host and port can be read. Drivers raise a plain ValueError otherwise."""
    try:
        hosts = urlsplit(url).netloc.rpartition("@")[2].split(",")
        return all((urlsplit(f"//{host}").port or 0) >= 0 for host in hosts)
    except ValueError:
        return False


VALKEY_SCHEMES = (
    "redis",
    "rediss",
    "valkey",
    "valkeys",
    "unix",
    "redis+sentinel",
    "rediss+sentinel",
    "valkey+sentinel",
    "valkeys+sentinel",
)


def parse_url(*schemes: str) -> Callable[[str], Secret]:
    def parse(text: str) -> Secret:
        try:
            parts = urlsplit(text)
            is_url = parts.scheme in schemes and bool(parts.netloc or _names_socket(parts))
        except ValueError:
            is_url = False
        if not (is_url and _has_readable_hosts(text)):  # A URL may carry a password.
            raise SecretValueError(f"must be an address like {schemes[0]}://host/….")
        return Secret(text)

    return parse
