"""Kills what a product is made of, again and again, in an order that a seed decides."""

import asyncio
import contextlib
import os
import signal
from collections import Counter
from random import Random

from simulation.laws import Witness
from tests.support.eventually import eventually
from tests.support.product import Product

# Each of them once before any of them again; there are two delivery processes.
VICTIMS = ("delivery", "delivery", "worker", "valkey", "postgres")
SECONDS_BETWEEN = (0.2, 1.5)
# Clients get on in between, however slow the machine is; else it would be about who starts how fast.
ACCEPTED_BETWEEN = 30
PROGRESS_SECONDS_MAX = 15.0
AT_ONCE = 0.3  # How often it does not wait for that: some are to die while others are not back yet.


class Attack:
    """Whom it has killed so far."""

    def __init__(self, product: Product, witness: Witness, seed: int) -> None:
        self._product = product
        self._witness = witness
        self._chance = Random(f"{seed}:attack")  # noqa: S311 - no secret is made of it
        self.kills: Counter[str] = Counter()

    async def run(self, *, kills: int) -> None:
        """Kill so many; the supervisor starts them again."""
        deck: list[str] = []
        while self.kills.total() < kills:
            if self._chance.random() >= AT_ONCE:
                await self._progress()
            await asyncio.sleep(self._chance.uniform(*SECONDS_BETWEEN))
            deck = deck or self._chance.sample(VICTIMS, len(VICTIMS))
            self._kill(deck.pop())
        await self._progress()

    async def _progress(self) -> None:
        """Let the clients get on."""
        due = len(self._witness.accepted) + ACCEPTED_BETWEEN
        with contextlib.suppress(TimeoutError):
            await eventually(
                lambda: len(self._witness.accepted) >= due, seconds=PROGRESS_SECONDS_MAX, every=0.05
            )

    def _kill(self, victim: str) -> None:
        pids = self._product.children(victim)
        if not pids:
            return  # It was killed before, and is not back yet.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._chance.choice(pids), signal.SIGKILL)
            self.kills[victim] += 1
