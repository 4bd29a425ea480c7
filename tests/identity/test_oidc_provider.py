"""What a provider signs is checked: every claim, and the signature by its own keys only."""

from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm

from adloom.core.errors import UnauthenticatedError, UnavailableError
from adloom.core.setting import Secret, SettingsError
from adloom.identity.single_sign_on.claims import choose_grant, read_person, read_words
from adloom.identity.single_sign_on.provider import KEPT, OidcProvider
from adloom.runtime.log_in_settings import LogInSettings, OidcSettings, parse_grants
from adloom.runtime.settings import read_control_settings
from tests.support.builders import NOON

ISSUER, CLIENT, NONCE = "https://id.example.com", "adloom", "a nonce"
KEY, OTHER_KEY = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
SETTINGS = OidcSettings(issuer=ISSUER, client_id=CLIENT, client_secret=Secret("a secret"))


def public_jwk(key: rsa.RSAPrivateKey, key_id: str) -> dict[str, Any]:
    return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": key_id}


class FakeProvider:
    """Answers as a provider does; what it says can be changed."""

    def __init__(self) -> None:
        self.keys = [public_jwk(KEY, "one")]
        self.discovery: dict[str, Any] = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "jwks_uri": f"{ISSUER}/keys",
        }
        self.body: bytes | None = None
        self.asked: list[str] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.path)
        if self.body is not None:
            return httpx.Response(200, content=self.body)
        if request.url.path.endswith("/openid-configuration"):
            return httpx.Response(200, json=self.discovery)
        return httpx.Response(200, json={"keys": self.keys})


@pytest.fixture
def fake() -> FakeProvider:
    return FakeProvider()


@pytest.fixture
async def provider(fake: FakeProvider) -> AsyncGenerator[OidcProvider]:
    async with httpx.AsyncClient(transport=httpx.MockTransport(fake.answer)) as client:
        yield OidcProvider(SETTINGS, client)


def make_token(key: Any = KEY, *, algorithm: str = "RS256", kid: str | None = "one", **changes: Any) -> str:
    at = int(NOON.timestamp())
    claims = {"iss": ISSUER, "aud": CLIENT, "sub": "s", "iat": at, "exp": at + 60, "nonce": NONCE, **changes}
    kept = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(kept, key, algorithm=algorithm, headers={"kid": kid} if kid else None)


async def test_a_right_token_is_believed(provider: OidcProvider) -> None:
    for token in (make_token(), make_token(kid=None), make_token(aud=[CLIENT]), make_token(azp=CLIENT)):
        assert (await provider.verify(token, nonce=NONCE, now=NOON))["sub"] == "s"


@pytest.mark.parametrize(
    "token",
    [
        make_token(OTHER_KEY),
        make_token("a secret that is long enough to sign", algorithm="HS256"),
        make_token("", algorithm="none"),
        make_token(iss="https://evil.example.com"),
        make_token(aud="another"),
        make_token(aud=[CLIENT, "another"]),
        make_token(azp="another"),
        make_token(nonce="another"),
        make_token(nonce=None),
        make_token(sub=None),
        make_token(sub=""),
        make_token(exp=None),
        make_token(exp=int(NOON.timestamp()) - 61),
        make_token(iat=int(NOON.timestamp()) + 61),
        make_token(nbf=int(NOON.timestamp()) + 61),
        make_token(kid="unknown"),
        "made up",
        "",
    ],
    ids=[
        "other-key",
        "hs256",
        "none",
        "issuer",
        "audience",
        "audiences",
        "azp",
        "nonce",
        "no-nonce",
        "no-sub",
        "empty-sub",
        "no-exp",
        "expired",
        "future",
        "not-yet",
        "unknown-key",
        "made-up",
        "empty",
    ],
)
async def test_a_wrong_token_is_refused(token: str, provider: OidcProvider) -> None:
    with pytest.raises(UnauthenticatedError):
        await provider.verify(token, nonce=NONCE, now=NOON)


async def test_a_new_key_is_looked_for_once_a_minute(provider: OidcProvider, fake: FakeProvider) -> None:
    await provider.verify(make_token(), nonce=NONCE, now=NOON)
    fake.keys.append(public_jwk(OTHER_KEY, "two"))
    rotated = make_token(OTHER_KEY, kid="two", exp=int(NOON.timestamp()) + 600)

    with pytest.raises(UnauthenticatedError):
        await provider.verify(rotated, nonce=NONCE, now=NOON + timedelta(seconds=59))
    assert (await provider.verify(rotated, nonce=NONCE, now=NOON + timedelta(seconds=60)))["sub"] == "s"
    assert fake.asked.count("/keys") == 2


async def test_what_is_read_is_kept_for_an_hour(provider: OidcProvider, fake: FakeProvider) -> None:
    for at in (NOON, NOON + KEPT - timedelta(seconds=1), NOON + KEPT):
        await provider.make_url(redirect_uri="x", state="s", nonce="n", challenge="c", now=at)

    assert len(fake.asked) == 2


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b"[]", b'{"issuer": 1}', b"x" * (2**20 + 1)])
async def test_a_strange_answer_is_a_sentence(
    body: bytes, provider: OidcProvider, fake: FakeProvider
) -> None:
    fake.body = body

    with pytest.raises(UnavailableError):
        await provider.make_url(redirect_uri="x", state="s", nonce="n", challenge="c", now=NOON)


async def test_another_issuer_is_not_believed(provider: OidcProvider, fake: FakeProvider) -> None:
    fake.discovery["issuer"] = "https://evil.example.com"

    with pytest.raises(UnavailableError):
        await provider.make_url(redirect_uri="x", state="s", nonce="n", challenge="c", now=NOON)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["a", "a.b", "email", "email_verified"]), json_values),
    st.sampled_from(["a", "a.b"]),
)
def test_any_claims_can_be_read(claims: dict[str, Any], name: str) -> None:
    person = read_person({**claims, "sub": "s"}, issuer=ISSUER, role_claim=name)

    assert person.email is None or claims["email_verified"] in (True, "true")
    assert all(isinstance(word, str) for word in read_words(claims, name))


def test_the_first_grant_wins() -> None:
    grants = parse_grants("staff=viewer, boss=admin")

    assert choose_grant(grants, ["boss", "staff"]) is grants[0]
    assert choose_grant(grants, ["other"]) is None


def read(**variables: str) -> LogInSettings:
    needed = {"DATABASE_URL": "postgres://h/d", "REDIS_URL": "redis://h", "JWT_SECRET": "x" * 32}
    return read_control_settings({**needed, **variables}).log_in


def test_settings_are_read() -> None:
    account = "01890000-0000-7000-8000-000000000001"
    log_in = read(
        ADLOOM_OIDC_ISSUER=ISSUER,
        ADLOOM_OIDC_CLIENT_ID=CLIENT,
        ADLOOM_OIDC_ROLE_CLAIM="groups",
        ADLOOM_OIDC_ROLE_MAP=f"a=b=admin, shop=advertiser:{account}",
        ADLOOM_PASSWORD_LOG_IN="off",
        ADLOOM_REQUIRE_SECOND_FACTOR="admin, viewer",
    )

    assert [str(grant) for grant in log_in.oidc.role_map] == ["a=b=admin", f"shop=advertiser:{account}"]
    assert log_in.oidc.find_name() == "id.example.com"
    assert (log_in.takes_passwords, log_in.second_factor_roles) == (False, ("admin", "viewer"))


@pytest.mark.parametrize(
    "variables",
    [
        {"ADLOOM_OIDC_ISSUER": ISSUER},
        {"ADLOOM_OIDC_CLIENT_ID": CLIENT},
        {"ADLOOM_PASSWORD_LOG_IN": "off"},
        {"ADLOOM_REQUIRE_SECOND_FACTOR": "owner"},
        {"ADLOOM_OIDC_ISSUER": "http://id.example.com", "ADLOOM_OIDC_CLIENT_ID": CLIENT},
        {"ADLOOM_OIDC_ROLE_MAP": "a=admin"},
        {"ADLOOM_OIDC_ROLE_CLAIM": "groups"},
        {"ADLOOM_OIDC_ROLE_CLAIM": "groups", "ADLOOM_OIDC_ROLE_MAP": "a=owner"},
        {"ADLOOM_OIDC_ROLE_CLAIM": "groups", "ADLOOM_OIDC_ROLE_MAP": "a=advertiser"},
        {
            "ADLOOM_OIDC_ROLE_CLAIM": "groups",
            "ADLOOM_OIDC_ROLE_MAP": "a=admin:01890000-0000-7000-8000-000000000001",
        },
    ],
    ids=[str(number) for number in range(10)],
)
def test_wrong_settings_stop_the_start(variables: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="ADLOOM_"):
        read(**variables)
