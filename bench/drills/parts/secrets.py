"""Secrets that sign tokens are changed by restarts, one process after another, while tokens are made and used."""

import asyncio
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import httpx

from bench.drills.parts.machines import ANSWER_SECONDS_MAX, EMAIL, NAMES, SECRET, SLUG, Parts
from bench.drills.result import Figures, require
from bench.servers import PASSWORD

NEW_SECRET: Final = "another-secret-of-the-drills-that-is-long-enough"  # noqa: S105 - likewise
# As the guide says: accepted everywhere before anything is signed with it, and the old one as long as it is used.
STEPS: Final = ((SECRET, NEW_SECRET), (NEW_SECRET, SECRET), (NEW_SECRET, ""))
SETTINGS: Final = {
    "delivery": ("ADLOOM_TOKEN_SECRET", "ADLOOM_OLDER_TOKEN_SECRETS"),
    "control": ("JWT_SECRET", "JWT_OLDER_SECRETS"),
}
SENDERS: Final = 4
PAUSE_SECONDS: Final = 0.05
COUNTED_SECONDS_MAX: Final = 120.0
COUNTED: Final = "SELECT count(*) FROM events.banner_impressions WHERE request_id IS NOT NULL"
LOG_IN: Final = {"email": EMAIL, "password": PASSWORD}


class TokenLoad:
    """Asks one delivery for an ad and reports it to the other; and asks controls with a token of a log-in."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._stop = asyncio.Event()
        self._token = parts.token
        self.reported = 0
        self.answered = 0
        self.wrong_tokens = 0
        self.slowest_seconds = 0.0

    async def run(self) -> None:
        async with httpx.AsyncClient(timeout=ANSWER_SECONDS_MAX) as client, asyncio.TaskGroup() as group:
            for sender in range(SENDERS):
                group.create_task(self._report_all(client, sender))
            group.create_task(self._ask_all(client))

    def stop(self) -> None:
        self._stop.set()

    async def log_in_again(self) -> None:
        """Take a token that is signed by the secret of now."""
        async with httpx.AsyncClient(timeout=ANSWER_SECONDS_MAX) as client:
            answer = await client.post(f"{self._parts.find_url('control', 'b')}/auth/login", json=LOG_IN)
            self._token = answer.raise_for_status().json()["accessToken"]

    async def _report_all(self, client: httpx.AsyncClient, number: int) -> None:
        while not self._stop.is_set():
            number += 1
            served = (await self._ask(client, "delivery", f"/banners/serve/{SLUG}", number)).json()
            token = served["banners"][0]["trackingToken"]
            event = {"correlationId": f"secrets-{number}", **self._parts.impression, "trackingToken": token}
            await self._ask(client, "delivery", "/banners/events/impression", number + 1, body=event)
            self.reported += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask_all(self, client: httpx.AsyncClient) -> None:
        while not self._stop.is_set():
            await self._ask(client, "control", "/admin/campaigns", self.answered)
            self.answered += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask(
        self,
        client: httpx.AsyncClient,
        plane: str,
        path: str,
        place: int,
        *,
        body: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        """Ask one process, and the other where it does not answer; all that answer must know the token."""
        began_at = time.monotonic()
        while True:
            url = f"{self._parts.find_url(plane, NAMES[place % len(NAMES)])}{path}"
            headers = {"Authorization": f"Bearer {self._token}"} if plane == "control" else {}
            try:
                answer = await client.request(
                    "GET" if body is None else "POST", url, json=body, headers=headers
                )
            except httpx.HTTPError:
                answer = None
            if answer is not None and answer.status_code in {HTTPStatus.OK, HTTPStatus.ACCEPTED}:
                self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began_at)
                return answer
            self.wrong_tokens += answer is not None and answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR
            place += 1
            await asyncio.sleep(PAUSE_SECONDS)


async def change_secrets(parts: Parts) -> Figures:
    """Secrets. Those that sign tokens are changed in three rounds of restarts: no token is refused."""
    load = TokenLoad(parts)
    using = asyncio.get_running_loop().create_task(load.run())
    restarts = 0
    for secret, older in STEPS:
        for name in NAMES:
            for plane, (setting, older_setting) in SETTINGS.items():
                await parts.restart(plane, name, {setting: secret, older_setting: older})
                restarts += 1
        if older == SECRET:
            await load.log_in_again()
    load.stop()
    await using
    async with asyncio.timeout(COUNTED_SECONDS_MAX):
        while await parts.pool.fetchval(COUNTED) != load.reported:  # noqa: ASYNC110 - the worker sends no notice
            await asyncio.sleep(PAUSE_SECONDS)
    require(is_so=load.wrong_tokens == 0, what=f"{load.wrong_tokens} tokens were refused")
    return {
        "restarts": restarts,
        "offers reported with their tokens, and counted": load.reported,
        "questions with a token of a log-in": load.answered,
        "tokens refused": load.wrong_tokens,
        "slowest answer, s": load.slowest_seconds,
    }
