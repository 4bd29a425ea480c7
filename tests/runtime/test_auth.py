"""Tokens, API keys and passwords."""

import asyncio
import base64
import json
from datetime import timedelta
from threading import Event
from uuid import uuid4

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.caller import Caller, Role
from adloom.core.errors import UnauthenticatedError
from adloom.core.setting import Secret
from adloom.runtime.auth.access_token import issue_access_token, verify_access_token
from adloom.runtime.auth.passwords import (
    Passwords,
    make_api_key,
    make_opaque_token,
    write_api_key_hint,
)
from adloom.runtime.auth.secret_hash import hash_secret
from adloom.runtime.settings import TokenSettings
from tests.support.builders import NOON
from tests.support.control import FAST_PASSWORDS, SECRET

ADMIN = Caller(subject="a-user", role=Role.ADMIN)
LIFETIME = timedelta(minutes=15)
CLAIMS = {
    "iss": "adloom",
    "sub": "a-user",
    "role": "admin",
    "iat": 0,
    "exp": 4_000_000_000,
    "jti": "01997ebb-0000-7000-8000-000000000001",
}


def a_token(secret: str = SECRET, algorithm: str = "HS256", **claims: object) -> str:
    return jwt.encode({**CLAIMS, **claims}, secret, algorithm=algorithm)


def test_a_token_of_an_older_secret_is_accepted_while_the_settings_name_it() -> None:
    older = Secret("another secret, as long as it has to be")
    token, forged = a_token(older), a_token("a secret of nobody, as long as it has to be")
    tokens = TokenSettings(older_secrets=(Secret("a third secret, as long as it has to be"), older))

    assert verify_access_token(SECRET, token, now=NOON, tokens=tokens).caller == ADMIN
    assert verify_access_token(SECRET, a_token(), now=NOON, tokens=tokens).caller == ADMIN
    for refused, settings in ((token, TokenSettings()), (forged, tokens), ("no token", tokens)):
        with pytest.raises(UnauthenticatedError):
            verify_access_token(SECRET, refused, now=NOON, tokens=settings)


def unsigned_token() -> str:
    parts = ({"alg": "none", "typ": "JWT"}, CLAIMS)
    return (
        ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        + "."
    )


@pytest.mark.parametrize("role", list(Role))
def test_a_token_names_the_actor_it_was_signed_for(role: Role) -> None:
    account_id = uuid4() if role in {Role.ADVERTISER, Role.PUBLISHER} else None
    caller = Caller(subject="a-user", role=role, account_id=account_id)

    token = issue_access_token(SECRET, caller, now=NOON, lifetime=LIFETIME)

    assert verify_access_token(SECRET, token, now=NOON).caller == caller


def test_a_token_expires_at_the_end_of_its_lifetime() -> None:
    token = issue_access_token(SECRET, ADMIN, now=NOON, lifetime=LIFETIME)

    assert verify_access_token(SECRET, token, now=NOON + LIFETIME - timedelta(seconds=1)).caller == ADMIN
    with pytest.raises(UnauthenticatedError, match="expired"):
        verify_access_token(SECRET, token, now=NOON + LIFETIME)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "nonsense",
        "a.b.c",
        unsigned_token(),
        a_token(secret="another-secret-that-is-also-long-enough"),
        a_token(algorithm="HS384", secret=SECRET + SECRET),
        a_token(iss="another issuer"),
        a_token(role="owner"),
        a_token(role="advertiser"),
        a_token(role="advertiser", account="not a uuid"),
        a_token(account=str(uuid4())),
        a_token(sub=7),
        a_token(exp="tomorrow"),
        *(
            jwt.encode({key: CLAIMS[key] for key in CLAIMS if key != missing}, SECRET, algorithm="HS256")
            for missing in ("exp", "iss", "jti")
        ),
    ],
    ids=[
        "empty",
        "nonsense",
        "three parts of nonsense",
        "algorithm none",
        "forged",
        "another algorithm",
        "another issuer",
        "unknown role",
        "advertiser without account",
        "account that is none",
        "admin with account",
        "subject that is no text",
        "expiry that is no number",
        "without expiry",
        "without issuer",
        "without an id",
    ],
)
def test_a_token_that_is_not_ours_is_refused(token: str) -> None:
    with pytest.raises(UnauthenticatedError):
        verify_access_token(SECRET, token, now=NOON)


@given(st.text(), st.integers(min_value=0, max_value=400))
def test_a_token_that_was_changed_anywhere_is_refused(text: str, place: int) -> None:
    token = issue_access_token(SECRET, ADMIN, now=NOON, lifetime=LIFETIME)
    changed = token[:place] + text + token[place + 1 :]

    try:
        caller = verify_access_token(SECRET, changed, now=NOON).caller
    except UnauthenticatedError:
        return
    # The last character of base64 has bits that nothing reads.
    assert caller == ADMIN


def test_an_api_key_is_identified_by_its_prefix_and_stored_as_a_hash() -> None:
    key = make_api_key()

    assert key.startswith("adk_")
    assert write_api_key_hint(key) == key[:12]
    assert len(hash_secret(key)) == 32
    assert hash_secret(key) == hash_secret(key) != hash_secret(make_api_key())


def test_tokens_never_repeat() -> None:
    assert len({make_opaque_token() for _ in range(1000)}) == 1000


async def matches(passwords: Passwords, shown: str, password_hash: str | None) -> bool:
    return await passwords.matches(shown, password_hash, client="192.0.2.0/24", is_known=False)


async def test_a_password_matches_only_its_own_hash() -> None:
    passwords = Passwords(FAST_PASSWORDS)
    password_hash = await passwords.hash("correct horse", client="ann")

    assert "correct" not in password_hash
    assert await matches(passwords, "correct horse", password_hash)
    assert not await matches(passwords, "battery staple", password_hash)
    assert not await matches(passwords, "correct horse", "not a hash")


async def test_a_password_is_checked_while_all_threads_of_the_loop_are_busy() -> None:
    is_done = Event()
    busy = [asyncio.create_task(asyncio.to_thread(is_done.wait, 30)) for _ in range(40)]
    try:
        await asyncio.sleep(0.05)
        assert not await asyncio.wait_for(matches(Passwords(FAST_PASSWORDS), "correct horse", None), 5)
    finally:
        is_done.set()
    await asyncio.gather(*busy)


async def test_no_password_matches_an_unknown_user() -> None:
    passwords = Passwords(FAST_PASSWORDS)

    assert not await matches(passwords, "", None)
    assert not await matches(passwords, "anything", None)
