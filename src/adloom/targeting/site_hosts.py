"""Which hosts are of a site: its domain and what is below it, narrowed by a pattern of its publisher."""

from functools import cached_property
from typing import Any, Final

import msgspec
import re2

PATTERN_LENGTH_MAX: Final = 500
# Memory of a compiled pattern. RE2 never backtracks; `(a{30}){30}` would only be large.
PATTERN_BYTES_MAX: Final = 256 * 1024
WWW: Final = "www."


class HostPatternError(ValueError):
    """A pattern that cannot be used; the message says why."""


def drop_www(host: str) -> str:
    return host.removeprefix(WWW)


class SiteHosts(msgspec.Struct, frozen=True, dict=True):
    """The hosts of one site. With and without `www.` a host is the same, as in the URL of a page.

    The pattern was checked by `check_host_pattern`.
    """

    domain: str
    pattern: str | None = None

    @cached_property
    def _compiled(self) -> Any:  # noqa: ANN401 - RE2 has no types
        return None if self.pattern is None else _compile(self.pattern)

    def has(self, host: str) -> bool:
        bare, domain = drop_www(host.lower().removesuffix(".")), drop_www(self.domain)
        if bare != domain and not bare.endswith(f".{domain}"):
            return False
        if self._compiled is None:
            return True
        return any(self._compiled.fullmatch(name) for name in (bare, WWW + bare))


def check_host_pattern(text: str) -> str:
    """Return a pattern that can be used; raises `HostPatternError`."""
    _compile(text)
    return text


def _compile(text: str) -> Any:  # noqa: ANN401 - RE2 has no types
    """Compile a regular expression in RE2's syntax, which takes linear time and knows no back-references."""
    options = re2.Options()
    options.max_mem = PATTERN_BYTES_MAX
    options.log_errors = False
    options.case_sensitive = False
    options.never_capture = True
    try:
        return re2.compile(text, options)
    except re2.error as error:  # pyright: ignore[reportUnknownVariableType] - likewise
        raise HostPatternError(_read_cause(*error.args)) from error  # pyright: ignore[reportUnknownArgumentType]


def _read_cause(cause: bytes | str = "it cannot be read", *_others: object) -> str:
    return cause.decode(errors="replace") if isinstance(cause, bytes) else cause
