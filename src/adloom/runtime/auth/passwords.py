"""Passwords, opaque tokens and API keys.

No function here logs anything, and no error repeats what was shown. The supervisor makes passwords, so
access tokens have their own module: their library takes 3 MB.
"""

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

import argon2

from adloom.runtime.auth.fair_turns import FairTurns
from adloom.runtime.auth.secret_hash import API_KEY_PREFIX

API_KEY_HINT_LENGTH: Final = 12
RANDOM_BYTES: Final = 32
# A hash takes 64 MiB and a core for a while: more at once would starve everything else.
PASSWORDS_AT_ONCE_MAX: Final = 2
# Not the loop's threads, where imports and exports of others may be at work for minutes.
_THREADS: Final = ThreadPoolExecutor(PASSWORDS_AT_ONCE_MAX, thread_name_prefix="passwords")
REFUSAL: Final = "Too many people log in at once; please try again in a moment."
P = ParamSpec("P")
R = TypeVar("R")


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
        self.turns = FairTurns(PASSWORDS_AT_ONCE_MAX, refusal=REFUSAL)
        self._decoy: str | None = None

    async def hash(self, password: str, *, client: str) -> str:
        """Hash a password that a person, whom we know, has chosen for themselves or for another."""
        async with self.turns.hold(client, is_known=True):
            return await _run(self._hasher.hash, password)

    async def matches(self, password: str, password_hash: str | None, *, client: str, is_known: bool) -> bool:
        """Compare a password with a hash.

        Without a hash a decoy is checked: the same work, so that the time of an answer
        does not show which users exist.
        """
        async with self.turns.hold(client, is_known=is_known):
            is_right = await _run(self._verify, password_hash, password)
        return is_right and password_hash is not None

    def _verify(self, password_hash: str | None, password: str) -> bool:
        if self._decoy is None:
            self._decoy = self._hasher.hash(make_opaque_token())
        try:
            return self._hasher.verify(password_hash or self._decoy, password)
        except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
            return False


async def _run(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, partial(work, *args, **kwargs))
