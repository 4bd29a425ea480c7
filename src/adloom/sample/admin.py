"""A small client of the admin API, on one connection."""

from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from adloom.core.errors import CommandError

ANSWER_SECONDS_MAX: Final = 30.0
ALREADY_DELETED: Final = "_ALREADY_DELETED"  # The end of a code; the beginning is the noun.


class SampleError(CommandError):
    """The sample cannot be loaded or removed; the message says why and what to do."""


class RefusedError(SampleError):
    """The admin API has refused a request, in its own words."""

    def __init__(self, problem: "Problem", status: int) -> None:
        super().__init__(problem.message)
        self.code = problem.error_code
        self.status = status


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a refusal that matters here."""

    message: str = "The admin API has refused it."
    error_code: str = ""


class AdminClient:
    """Calls the control plane with a token."""

    def __init__(self, control_url: str, token: str) -> None:
        self._control_url = control_url
        parts = urlsplit(control_url)
        assert parts.hostname is not None
        self._connection = HTTPConnection(parts.hostname, parts.port, timeout=ANSWER_SECONDS_MAX)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def make(self, path: str, body: dict[str, Any]) -> str:
        """Create an item and return its id."""
        return str(self.send("POST", path, body)["id"])

    def upload(self, data: bytes, *, name: str) -> str:
        """Upload a file and return its address."""
        status, answer = self._send("POST", f"/admin/assets?{urlencode({'name': name})}", data)
        if status >= HTTPStatus.BAD_REQUEST:
            raise RefusedError(_parse_problem(answer), status)
        return str(msgspec.json.decode(answer)["url"])

    def read(self, path: str) -> dict[str, Any]:
        return self.send("GET", path)

    def delete(self, path: str) -> bool:
        """Delete an item; return whether it was there. An item that others depend on raises RefusedError."""
        try:
            self.send("DELETE", path)
        except RefusedError as error:
            # Gone for good, or deleted by a person and restorable: both are what we want.
            if error.status == HTTPStatus.NOT_FOUND or error.code.endswith(ALREADY_DELETED):
                return False
            raise
        return True

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return the body of its answer."""
        status, answer = self._send(method, path, None if body is None else msgspec.json.encode(body))
        if status >= HTTPStatus.BAD_REQUEST:
            raise RefusedError(_parse_problem(answer), status)
        return msgspec.json.decode(answer) if answer else {}

    def close(self) -> None:
        self._connection.close()

    def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        try:
            self._connection.request(method, path, body, self._headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise SampleError(
                f"The control plane at {self._control_url} does not answer: {error}. Is `adloom up` running?"
            ) from error


def _parse_problem(answer: bytes) -> Problem:
    try:
        return msgspec.json.decode(answer, type=Problem)
    except msgspec.MsgspecError:
        return Problem()
