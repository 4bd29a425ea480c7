"""The spool's law: acknowledged entries are drained in order, whatever breaks, at any step.

Processes put, drain, fail and die at any step of the disk, alone or with the machine's power.
"""

from collections.abc import Coroutine
from itertools import count
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adloom.core.errors import UnavailableError
from adloom.events.log.spool.backlog import Backlog
from tests.support.fake_disk import DiskImage, FakeDisk, Fault, KilledError
from tests.support.for_each import for_each, seeds

T = TypeVar("T")

SEGMENT_BYTES_MAX = 150  # So that a few batches fill a file.
BYTES_MAX = 1200
OWNERS = ("delivery-1", "delivery-2")
MANY = 1000

owners = st.sampled_from(OWNERS)
faults = st.sampled_from(Fault)
steps = st.integers(0, 8)
shares = st.floats(0, 1)


def run_at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never has to wait."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits for something")


class Process:
    """One life of a delivery process."""

    def __init__(self, image: DiskImage, owner: str, number: int) -> None:
        self.disk = FakeDisk(image)
        self.life = number
        self.backlog = Backlog(
            self.disk,
            owner=owner,
            life=UUID(int=number),
            bytes_max=BYTES_MAX,
            segment_bytes_max=SEGMENT_BYTES_MAX,
        )


class SpoolMachine(RuleBasedStateMachine):
    """Two processes on one machine, and a log that may be away."""

    @initialize(seed=st.integers(0, 2**16))
    def begin(self, seed: int) -> None:
        self.image = DiskImage(Random(seed))  # noqa: S311 - not for cryptography
        self.ledger: list[bytes] = []
        self.put_in: set[bytes] = set()
        self.acknowledged: dict[int, list[bytes]] = {}
        self.lives = count(1)
        self.entries = count(1)
        self.processes: dict[str, Process] = {}

    def process(self, owner: str) -> Process:
        """Return a living process, a new one if the last has died."""
        process = self.processes.get(owner)
        if process is None or process.disk.is_dead:
            process = Process(self.image, owner, next(self.lives))
            self.processes[owner] = process
            self.acknowledged[process.life] = []
            run_at_once(process.backlog.adopt(is_all=False))
        return process

    @rule(owner=owners, lengths=st.lists(st.integers(1, 60), min_size=1, max_size=5))
    def put(self, owner: str, lengths: list[int]) -> None:
        process = self.process(owner)
        batch = [b"%d " % next(self.entries) + b"x" * length for length in lengths]
        self.put_in.update(batch)
        try:
            run_at_once(process.backlog.put(batch))
        except (UnavailableError, KilledError):
            return
        self.acknowledged[process.life] += batch

    @rule(owner=owners, count_max=st.integers(1, 10), taken=st.integers(0, 10), is_answered=st.booleans())
    def drain(self, owner: str, count_max: int, taken: int, *, is_answered: bool) -> None:
        process = self.process(owner)
        try:
            batch = run_at_once(process.backlog.read_batch(count_max))
        except (OSError, KilledError):
            return
        if batch is None:
            return
        entries = batch.found.entries
        self.ledger += entries if is_answered else entries[:taken]
        if is_answered:
            process.backlog.advance(batch)

    @rule(owner=owners, fault=faults, after_steps=steps, share=shares)
    def plan(self, owner: str, fault: Fault, after_steps: int, share: float) -> None:
        self.process(owner).disk.plan(fault, after_steps=after_steps, share_written=share)

    @rule(owner=owners)
    def kill(self, owner: str) -> None:
        self.process(owner).disk.die()

    @rule()
    def lose_power(self) -> None:
        for process in self.processes.values():
            process.disk.die()
        self.image.lose_power()

    @rule(owner=owners)
    def look(self, owner: str) -> None:
        process = self.process(owner)
        try:
            run_at_once(process.backlog.tidy())
            run_at_once(process.backlog.adopt(is_all=True))
        except (OSError, KilledError):
            return

    @invariant()
    def nothing_comes_out_that_was_not_put_in(self) -> None:
        assert self.put_in.issuperset(self.ledger)

    @invariant()
    def the_bound_is_kept(self) -> None:
        for process in self.processes.values():
            backlog = process.backlog
            assert backlog.own_bytes >= 0
            assert backlog.adopted_bytes >= 0
            assert backlog.own_bytes <= BYTES_MAX

    def teardown(self) -> None:
        """End all faults, drain everything, and check the result."""
        for owner in OWNERS:
            self.process(owner).disk.plan_nothing()
        for owner in OWNERS * 3:
            self.look(owner)
            while self.drained_once(self.process(owner)):
                pass
        assert not any(name.endswith(".damaged") for name in self.image.files)
        assert not self.image.files, "drained files are removed"
        self.all_that_was_acknowledged_came_out_in_order()

    def drained_once(self, process: Process) -> bool:
        batch = run_at_once(process.backlog.read_batch(MANY))
        if batch is None:
            return False
        self.ledger += batch.found.entries
        process.backlog.advance(batch)
        return True

    def all_that_was_acknowledged_came_out_in_order(self) -> None:
        first = {entry: place for place, entry in reversed(list(enumerate(self.ledger)))}
        for entries in self.acknowledged.values():
            places = [first.get(entry) for entry in entries]
            assert None not in places, "lost"
            assert places == sorted(place for place in places if place is not None)


@for_each("seed", seeds(150))
def test_acknowledged_entries_are_drained_in_order_after_many_steps(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - not for cryptography
    machine = SpoolMachine()
    machine.begin(seed=seed)

    for _ in range(60):
        act_by_chance(machine, chance)
        machine.nothing_comes_out_that_was_not_put_in()
        machine.the_bound_is_kept()

    machine.teardown()


def act_by_chance(machine: SpoolMachine, chance: Random) -> None:
    owner = chance.choice(OWNERS)
    match chance.choices(("put", "drain", "plan", "look", "kill", "lose power"), (40, 30, 10, 12, 5, 3))[0]:
        case "put":
            machine.put(owner, [chance.randint(1, 60) for _ in range(chance.randint(1, 5))])
        case "drain":
            is_answered = chance.random() < 0.7
            machine.drain(owner, chance.randint(1, 10), chance.randint(0, 10), is_answered=is_answered)
        case "plan":
            machine.plan(owner, chance.choice(list(Fault)), chance.randint(0, 8), chance.random())
        case "look":
            machine.look(owner)
        case "kill":
            machine.kill(owner)
        case _:
            machine.lose_power()


SpoolMachine.TestCase.settings = settings(stateful_step_count=30, deadline=None)
test_acknowledged_entries_are_drained_in_order = SpoolMachine.TestCase
