"""Hosts that die between any two effects, stores that answer late or never, and two owners at the same time."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import Address, FencedOutError, StateWrite, StoredState
from adloom.runtime.actors.host import POLL_SECONDS, ActorHost
from adloom.runtime.actors.mailboxes import Mailboxes
from simulation import loop as virtual
from simulation.faults import VirtualClock
from simulation.loop import make_random
from tests.support.accounts import ACCOUNT, Account, Changed, Note, Pay, an_account
from tests.support.actors import START, Catalog, MemoryStates

KEYS = "abcd"
SECONDS = 40


class FaultyStates(MemoryStates):
    """States with a faulty server, which checks the laws after every commit."""

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self.chance = chance
        self.faults = Counter[str]()
        self.is_calm = False
        self.violations: list[
            str
        ] = []  # Collected, because an error raised here would be handled by the host.

    def strikes(self, name: str, rate: float) -> bool:
        is_struck = not self.is_calm and self.chance.random() < rate
        self.faults[name] += is_struck
        return is_struck

    def account(self, key: str) -> Account:
        stored = self.states.get(an_account(key))
        if stored is None:
            return Account(key)
        return ACCOUNT.decode(stored.state, format_number=stored.format)

    def apply(self, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]) -> None:
        super().apply(writes, records)
        self.check()

    def apply_late(self, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]) -> None:
        """Finish a commit whose client has given up."""
        try:
            self.apply(writes, records)
        except FencedOutError:
            self.faults["late commit fenced out"] += 1

    def check(self) -> None:
        accounts = {key: self.account(key) for key in KEYS}
        on_their_way = sum(
            owed.amount
            for account in accounts.values()
            for name, owed in account.owed.items()
            if name not in accounts[owed.to].received
        )
        there = sum(account.balance for account in accounts.values())
        self.demand(there + on_their_way == 100 * len(KEYS), "money was created or lost")
        for key, account in accounts.items():
            serials = [row.serial for row in self.records if isinstance(row, Changed) and row.key == key]
            self.demand(serials == list(range(1, account.serial + 1)), "records and states disagree")

    def check_message(self, message: msgspec.Struct) -> None:
        assert isinstance(message, Changed)
        self.demand(self.account(message.key).serial >= message.serial, "seen before it was durable")

    def demand(self, is_so: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
        if not is_so:
            self.violations.append(otherwise)


class Process:
    """One life of a host, and its connections to the world; it dies at any of them."""

    def __init__(self, states: FaultyStates, clock: VirtualClock) -> None:
        chance = states.chance
        self._states = states
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.host = ActorHost(
            [ACCOUNT],
            self,
            introduction=Catalog(),
            audience=self,
            clock=clock,
            chance=chance,
            mailboxes=Mailboxes(
                mailbox_max=chance.choice([3, 1_000]), messages_max=chance.choice([6, 1_000])
            ),
            batch_max=chance.choice([1, 3, 100]),
            idle_max=timedelta(seconds=chance.choice([0.3, 3, 300])),
        )

    @property
    def is_alive(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self, group: asyncio.TaskGroup) -> None:
        self._task = group.create_task(self.host.run(self._stop))

    async def stop(self) -> None:
        assert self._task is not None
        self._stop.set()
        await asyncio.wait([self._task])

    def kill(self) -> None:
        assert self._task is not None
        self._task.cancel()

    async def load(self, addresses: Sequence[Address]) -> Mapping[Address, StoredState]:
        await self._may_die("before a load")
        await self._may_fail("load failed")
        return await self._states.load(addresses)

    async def list_timers(self, *, until: datetime | None = None) -> Sequence[tuple[Address, datetime]]:
        await self._may_fail("timers failed")
        return await self._states.list_timers(until=until)

    async def commit(self, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]) -> None:
        states = self._states
        await self._may_die("before a commit")
        await self._may_fail("commit failed")
        if states.strikes("commit late", 0.03):
            seconds = states.chance.expovariate(1)
            asyncio.get_running_loop().call_later(seconds, states.apply_late, writes, records)
            raise UnavailableError("It takes too long.")
        states.apply(writes, records)
        await self._may_fail("commit answer lost")
        await self._may_die("after a commit")

    async def publish(self, messages: Sequence[tuple[str, msgspec.Struct]]) -> None:
        await self._may_die("before a publish")
        for _, message in messages:
            self._states.check_message(message)
        await self._may_fail("publish answer lost")
        await self._may_die("after a publish")

    async def _may_fail(self, name: str) -> None:
        await asyncio.sleep(self._states.chance.expovariate(100))
        if self._states.strikes(name, 0.02):
            raise UnavailableError(name)
        if self._states.strikes(f"{name} after a while", 0.01):
            await asyncio.sleep(self._states.chance.uniform(0, 3))

    async def _may_die(self, when: str) -> None:
        if self._states.strikes(f"died {when}", 0.01):
            self.kill()
            await asyncio.sleep(60)


class World:
    """Clients that repeat their requests until they are confirmed."""

    def __init__(self, seed: int, states: type[FaultyStates] = FaultyStates) -> None:
        self._chance = make_random(seed, "accounts")
        self._states = states(self._chance)
        self._clock = VirtualClock(START)
        self._processes: list[Process] = []
        self._owed: Counter[str] = Counter()
        self._is_over = asyncio.Event()

    async def run(self) -> FaultyStates:
        async with asyncio.TaskGroup() as group:
            for number in range(2):
                group.create_task(self._keep_alive(group, is_second=bool(number)))
            async with asyncio.TaskGroup() as clients:
                for number in range(60):
                    clients.create_task(self._pay(f"p{number}"))
                    clients.create_task(self._note(f"n{number}"))
                await asyncio.sleep(SECONDS)
                self._states.is_calm = True
            await asyncio.sleep(POLL_SECONDS + 10)
            self._is_over.set()
        self._judge()
        return self._states

    async def _keep_alive(self, group: asyncio.TaskGroup, *, is_second: bool) -> None:
        """Start a process whenever one has ended; the second one is short-run_world, and a rival owner."""
        while not self._states.is_calm or not is_second:
            if is_second:
                await asyncio.sleep(self._chance.expovariate(1 / 10))
            process = Process(self._states, self._clock)
            process.start(group)
            self._processes.append(process)
            await self._live(process, seconds=self._chance.expovariate(1 / (2 if is_second else 8)))
            self._processes.remove(process)
            if self._is_over.is_set():
                return

    async def _live(self, process: Process, *, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + seconds
        while process.is_alive and not self._is_over.is_set():
            await asyncio.sleep(0.1)
            if loop.time() > ends_at and self._states.strikes("process killed", 0.5):
                process.kill()
            elif loop.time() > ends_at and self._states.strikes("process stopped", 0.5):
                break
        await process.stop()

    async def _host(self) -> ActorHost:
        while not self._processes:  # noqa: ASYNC110 - chance decides when one starts
            await asyncio.sleep(0.1)
        return self._chance.choice(self._processes).host

    async def _pay(self, name: str) -> None:
        payer, to = self._chance.sample(KEYS, 2)
        amount = self._chance.randrange(1, 50)
        self._owed.update({payer: -amount, to: amount})
        await asyncio.sleep(self._chance.uniform(0, SECONDS))
        while True:
            try:
                message = await (await self._host()).ask(
                    an_account(payer), Pay(name, to, amount), seconds_max=self._chance.choice([0.05, 5])
                )
            except (UnavailableError, TimeoutError):
                await asyncio.sleep(self._chance.expovariate(2))
            else:
                self._states.check_message(message)
                return

    async def _note(self, name: str) -> None:
        key = self._chance.choice(KEYS)
        await asyncio.sleep(self._chance.uniform(0, SECONDS))
        while True:
            try:
                await (await self._host()).send_durably(an_account(key), Note(name))
            except UnavailableError:
                await asyncio.sleep(self._chance.expovariate(2))
            else:
                self._states.demand(
                    name in self._states.account(key).noted, "not durable when it was reported durable"
                )
                return

    def _judge(self) -> None:
        self._states.check()
        for key in KEYS:
            account = self._states.account(key)
            self._states.demand(account.balance == 100 + self._owed[key], "a payment was lost or made twice")
            self._states.demand(not account.owed and account.note_at is None, "an alarm was lost")


def run_world(seed: int, states: type[FaultyStates] = FaultyStates) -> FaultyStates:
    async def run() -> FaultyStates:
        return await World(seed, states).run()

    return virtual.run(seed, run())


@pytest.mark.slow
@settings(max_examples=settings().max_examples * 2 // 5)
@given(st.integers(0, 2**32))
def test_money_is_conserved_and_nothing_is_visible_before_it_is_durable(seed: int) -> None:
    assert run_world(seed).violations == []


def test_all_faults_occur() -> None:
    struck = Counter[str]()
    for seed in range(15):
        struck += run_world(seed).faults

    assert {name for name in struck if name.startswith("died")} == {
        f"died {when}"
        for when in (
            "before a load",
            "before a commit",
            "after a commit",
            "before a publish",
            "after a publish",
        )
    }
    assert struck["late commit fenced out"]
    assert struck["commit answer lost"]
    assert struck["process killed"]
    assert struck["process stopped"]


class Fenceless(FaultyStates):
    """Lets a former owner write."""

    def fence(self, writes: Sequence[StateWrite]) -> None:
        pass


def test_two_owners_without_fencing_violate_the_laws() -> None:
    assert any(run_world(seed, Fenceless).violations for seed in range(10))


def test_the_same_seed_gives_the_same_run() -> None:
    first, second = run_world(7), run_world(7)

    assert (first.states, first.records, first.faults) == (second.states, second.records, second.faults)
