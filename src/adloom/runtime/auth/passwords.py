"""Passwords, opaque tokens and API keys.

No function here logs anything, and no error repeats what was shown. The supervisor makes passwords, so
access tokens have their own module: their library takes 3 MB.
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

import argon2

from adloom.core.errors import UnavailableError
from adloom.runtime.auth.secret_hash import API_KEY_PREFIX

P = ParamSpec("P")
R = TypeVar("R")

API_KEY_HINT_LENGTH: Final = 12
RANDOM_BYTES: Final = 32
# A hash takes 64 MiB and a core for a while: more at once would starve everything else.
PASSWORDS_AT_ONCE_MAX: Final = 2
PASSWORDS_WAITING_MAX: Final = 100  # Some seconds of work; beyond, we answer 503 at once.


def make_opaque_token() -> str:
    """Make a random token; only its hash is stored."""
    return secrets.token_urlsafe(RANDOM_BYTES)


def make_api_key() -> str:
    """Make a key for a machine; it is shown once, and only its hash is stored."""
    return API_KEY_PREFIX + make_opaque_token()


def write_api_key_hint(key: str) -> str:
    """Return the beginning of a key, by which its owner recognises it."""
    return key[:API_KEY_HINT_LENGTH]


class Passwords:
    """Hashes and checks passwords with Argon2, in threads, because that is slow on purpose."""

    def __init__(self, hasher: argon2.PasswordHasher | None = None) -> None:
        self._hasher = hasher or argon2.PasswordHasher()
        self._turns = asyncio.Semaphore(PASSWORDS_AT_ONCE_MAX)
        self._waiting = 0
        self._decoy: str | None = None

    async def hash(self, password: str) -> str:
        return await self._run_in_turn(self._hasher.hash, password)

    async def matches(self, password: str, password_hash: str | None) -> bool:
        """Compare a password with a hash.

        Without a hash a decoy is checked: the same work, so that the time of an answer
        does not show which users exist.
        """
        if self._decoy is None:
            self._decoy = await self.hash(make_opaque_token())
        is_right = await self._run_in_turn(self._verify, password_hash or self._decoy, password)
        return is_right and password_hash is not None

    async def _run_in_turn(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        if self._waiting >= PASSWORDS_WAITING_MAX:
            raise UnavailableError("Too many people log in at once; please try again in a moment.")
        self._waiting += 1
        try:
            async with self._turns:
                return await asyncio.to_thread(work, *args, **kwargs)
        finally:
            self._waiting -= 1

    def _verify(self, password_hash: str, password: str) -> bool:
        try:
            return self._hasher.verify(password_hash, password)
        except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
            return False
