"""A real OpenID provider on this machine, in a process of its own. It refuses codes without the right PKCE verifier.

`python -m tests.support.oidc_provider PORT` runs it.
"""

import base64
import contextlib
import hashlib
import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from adloom.runtime.ports import find_port

START_SECONDS_MAX = 30.0
Environ = dict[str, Any]


class CheckedByPkce:
    """The provider behind a check that it does not make itself: RFC 7636."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app
        self._challenges: dict[str, str] = {}

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/oauth2/token" and not self._is_right(environ):
            start_response("400 Bad Request", [("Content-Type", "application/json")])
            return [b'{"error": "invalid_grant"}']

        def keep(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            location = dict(headers).get("Location", "")
            for code in parse_qs(urlsplit(location).query).get("code", []):
                asked = parse_qs(environ["QUERY_STRING"])
                assert asked["code_challenge_method"] == ["S256"]
                self._challenges[code] = asked["code_challenge"][0]
            return start_response(status, headers, *rest)

        return self._app(environ, keep)

    def _is_right(self, environ: Environ) -> bool:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        fields = parse_qs(body.decode())
        digest = hashlib.sha256(fields.get("code_verifier", [""])[0].encode()).digest()
        challenge = self._challenges.get(fields.get("code", [""])[0])
        return challenge == base64.urlsafe_b64encode(digest).decode().rstrip("=")


class RunningProvider:
    """The address of a provider, and the people whom it knows."""

    def __init__(self, url: str) -> None:
        self.url = url

    def knows(self, subject: str, **claims: object) -> None:
        """Give a person claims; those of before are forgotten."""
        httpx.put(f"{self.url}/users/{subject}", json=claims).raise_for_status()

    def approve(self, url: str, subject: str) -> str:
        """Log a person in there, as its form does, and return the address that the browser is sent back to."""
        answer = httpx.post(url, data={"sub": subject})
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]


@contextlib.contextmanager
def an_oidc_provider() -> Generator[RunningProvider]:
    port = find_port()
    environment = {**os.environ, "AUTHLIB_INSECURE_TRANSPORT": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.oidc_provider", str(port)], env=environment
    )
    running = RunningProvider(f"http://127.0.0.1:{port}")
    try:
        until = time.monotonic() + START_SECONDS_MAX
        while True:
            assert process.poll() is None
            assert time.monotonic() < until
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"{running.url}/jwks").raise_for_status()
                break
            time.sleep(0.05)
        yield running
    finally:
        process.kill()
        process.wait()


def main() -> None:
    import oidc_provider_mock  # noqa: PLC0415 - it warns of its own library, which ends a test
    import werkzeug.serving  # noqa: PLC0415 - likewise

    app = oidc_provider_mock.app(require_nonce=True)
    werkzeug.serving.run_simple("127.0.0.1", int(sys.argv[1]), CheckedByPkce(app), threaded=True)


if __name__ == "__main__":
    main()
