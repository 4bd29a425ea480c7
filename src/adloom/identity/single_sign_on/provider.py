"""The provider: its description and keys, cached; exchanging a code; checking what it has signed."""

import asyncio
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

import httpx
import jwt
import msgspec
import structlog

from adloom.core.errors import UnauthenticatedError, UnavailableError
from adloom.runtime.log_in_settings import OidcSettings

SECONDS_MAX: Final = 8.0  # For one question; a log-in asks three at most.
BYTES_MAX: Final = 2**20
KEPT: Final = timedelta(hours=1)
# An unknown key makes us look again, but not for everybody who makes one up.
KEYS_AGAIN_AFTER: Final = timedelta(minutes=1)
LEEWAY_SECONDS: Final = 60
# Signed by the provider alone: with a shared secret, or with none, we could have signed it ourselves.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
BASIC: Final = "client_secret_basic"
AWAY: Final = "The log-in provider does not answer as it should. Try again in a moment, or tell an admin."
NOT_PROVEN: Final = "What the log-in provider sent could not be verified. Log in again."

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider says of itself."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: list[str] = msgspec.field(default_factory=lambda: [BASIC])


class ProviderTokens(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider gives for a code."""

    id_token: str
    access_token: str | None = None

    def __repr__(self) -> str:
        """Show nothing."""
        return "ProviderTokens(…)"


class OidcProvider:
    """One provider. Its description and keys are read when they are first needed, and kept for an hour."""

    def __init__(self, settings: OidcSettings, client: httpx.AsyncClient) -> None:
        assert settings.issuer is not None
        assert settings.client_id is not None
        self._settings = settings
        self._issuer, self._client_id = settings.issuer, settings.client_id
        self._client = client
        self._discovery: tuple[Discovery, datetime] | None = None
        self._keys: tuple[jwt.PyJWKSet, datetime] | None = None

    async def make_url(
        self, *, redirect_uri: str, state: str, nonce: str, challenge: str, now: datetime
    ) -> str:
        """Return the address at which a person logs in."""
        discovery = await self._discover(now)
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self._client_id,
                "redirect_uri": redirect_uri,
                "scope": self._settings.scopes,
                "state": state,
                "nonce": nonce,
                "code_challenge": challenge,
                "code_challenge_method": "S256",
            }
        )
        sign = "&" if "?" in discovery.authorization_endpoint else "?"
        return f"{discovery.authorization_endpoint}{sign}{query}"

    async def exchange(self, code: str, *, verifier: str, redirect_uri: str, now: datetime) -> ProviderTokens:
        """Exchange a code for what the provider says of the person."""
        discovery = await self._discover(now)
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        secret, auth = self._settings.client_secret, None
        if secret is None:
            fields["client_id"] = self._client_id
        elif BASIC in discovery.token_endpoint_auth_methods_supported:
            auth = httpx.BasicAuth(quote(self._client_id, safe=""), quote(secret, safe=""))
        else:
            fields |= {"client_id": self._client_id, "client_secret": secret}
        request = self._client.build_request("POST", discovery.token_endpoint, data=fields)
        status, body = await self._ask(request, auth=auth)
        if status in {400, 401}:
            log.warning("single_sign_on_refused", status=status, error=_read_error(body))
            raise UnauthenticatedError("The log-in provider refused the log-in. Log in again.")
        return _convert(_require_ok(status, body), ProviderTokens)

    async def verify(self, id_token: str, *, nonce: str, now: datetime) -> dict[str, Any]:
        """Return what an ID token says, after checking its signature, issuer, audience, times and nonce."""
        discovery = await self._discover(now)
        key = await self._find_key(id_token, discovery, now)
        try:
            claims: dict[str, Any] = jwt.decode(
                id_token,
                key.key,
                algorithms=list(ALGORITHMS),
                audience=self._client_id,
                issuer=discovery.issuer,
                options={
                    "require": ["iss", "sub", "aud", "exp", "iat"],
                    # Against `now`, below: the library would ask the machine's clock.
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except (jwt.InvalidTokenError, TypeError, ValueError) as error:
            raise self._make_not_proven_error(repr(error)) from error
        if problem := _find_problem(claims, self._client_id, nonce, now):
            raise self._make_not_proven_error(problem)
        return claims

    async def read_user_info(self, access_token: str, subject: str, *, now: datetime) -> dict[str, Any]:
        """Return what the provider says besides; some have e-mail and roles only there."""
        discovery = await self._discover(now)
        if discovery.userinfo_endpoint is None:
            return {}
        headers = {"Authorization": f"Bearer {access_token}"}
        request = self._client.build_request("GET", discovery.userinfo_endpoint, headers=headers)
        said = _convert(_require_ok(*await self._ask(request)), dict[str, Any])
        return said if said.get("sub") == subject else {}

    async def _discover(self, now: datetime) -> Discovery:
        if self._discovery is not None and now - self._discovery[1] < KEPT:
            return self._discovery[0]
        url = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
        discovery = _convert(_require_ok(*await self._ask(self._client.build_request("GET", url))), Discovery)
        if discovery.issuer.rstrip("/") != self._issuer.rstrip("/"):
            log.warning("single_sign_on_failed", reason="the provider names another issuer")
            raise UnavailableError(AWAY)
        self._discovery = (discovery, now)
        return discovery

    async def _find_key(self, id_token: str, discovery: Discovery, now: datetime) -> jwt.PyJWK:
        try:
            key_id: str | None = jwt.get_unverified_header(id_token).get("kid")
        except jwt.InvalidTokenError as error:
            raise self._make_not_proven_error("it is no token") from error
        for is_again in (False, True):
            keys = await self._read_keys(discovery, now, is_again=is_again)
            found = [key for key in keys.keys if key_id in {None, key.key_id}]
            if len(found) == 1:
                return found[0]
        raise self._make_not_proven_error("no key of the provider's is its")

    async def _read_keys(self, discovery: Discovery, now: datetime, *, is_again: bool) -> jwt.PyJWKSet:
        kept = KEYS_AGAIN_AFTER if is_again else KEPT
        if self._keys is not None and now - self._keys[1] < kept:
            return self._keys[0]
        status, body = await self._ask(self._client.build_request("GET", discovery.jwks_uri))
        try:
            keys = jwt.PyJWKSet.from_dict(_convert(_require_ok(status, body), dict[str, Any]))
        except jwt.PyJWTError as error:
            log.warning("single_sign_on_failed", reason=repr(error))
            raise UnavailableError(AWAY) from error
        self._keys = (keys, now)
        return keys

    async def _ask(self, request: httpx.Request, *, auth: httpx.Auth | None = None) -> tuple[int, bytes]:
        """Send a request, and return status and body, both within bounds."""
        body = bytearray()
        try:
            async with asyncio.timeout(SECONDS_MAX):
                answer = await self._client.send(request, auth=auth, stream=True)
                try:
                    async for chunk in answer.aiter_bytes():
                        body += chunk
                        if len(body) > BYTES_MAX:
                            raise httpx.TransportError("the answer is too long")
                finally:
                    await answer.aclose()
        except (httpx.HTTPError, TimeoutError, OSError) as error:
            log.warning(
                "single_sign_on_failed", url=str(request.url.copy_with(query=None)), error=repr(error)
            )
            raise UnavailableError(AWAY) from error
        return answer.status_code, bytes(body)

    def _make_not_proven_error(self, reason: str) -> UnauthenticatedError:
        log.warning("single_sign_on_refused", reason=reason)
        return UnauthenticatedError(NOT_PROVEN)


def _find_problem(claims: Mapping[str, Any], client_id: str, nonce: str, now: datetime) -> str | None:
    """Say what is wrong with the claims of a token that is signed right."""
    at = now.timestamp()
    try:
        has_expired = at >= float(claims["exp"]) + LEEWAY_SECONDS
        is_of_future = max(float(claims["iat"]), float(claims.get("nbf", 0))) > at + LEEWAY_SECONDS
    except (TypeError, ValueError):
        return "its times are no numbers"
    is_for_several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1  # pyright: ignore[reportUnknownArgumentType] - JSON
    is_of_this = hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode())
    problems = {
        "it has expired": has_expired,
        "it is of the future": is_of_future,
        "its nonce is another": not is_of_this,
        "it was made for another client": claims.get("azp", client_id) != client_id,
        "it is for several, and does not say for which client": is_for_several and "azp" not in claims,
        "it names nobody": not claims["sub"],
    }
    return next((problem for problem, is_so in problems.items() if is_so), None)


def _require_ok(status: int, body: bytes) -> bytes:
    if status != HTTPStatus.OK:
        log.warning("single_sign_on_failed", status=status)
        raise UnavailableError(AWAY)
    return body


def _convert(body: bytes, kind: Any) -> Any:  # noqa: ANN401 - as it is asked for
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        log.warning("single_sign_on_failed", reason=str(error))
        raise UnavailableError(AWAY) from error


def _read_error(body: bytes) -> str:
    """Return the provider's word for what is wrong; it is no secret."""
    try:
        return str(msgspec.json.decode(body, type=dict[str, Any]).get("error", ""))[:100]
    except msgspec.MsgspecError:
        return ""
