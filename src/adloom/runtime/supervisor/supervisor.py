"""Keeps child processes alive, and stops them in order.

Children are started in stages, and stopped in the opposite order. A child may go on for a while until others of its stage that report to it have ended.
"""

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence

import structlog

from adloom.runtime.supervisor import program as programs
from adloom.runtime.supervisor.child import ChildSpec, Replacement, StartError, SupervisedChild
from adloom.runtime.supervisor.program import Start

START_SECONDS_MAX = 60.0
DEATH_SIGNAL_SECONDS_MAX = 0.5

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Supervisor:
    """Keeps children alive until it is asked to stop."""

    def __init__(self, tasks: asyncio.TaskGroup, start: Start = programs.start) -> None:
        self._tasks = tasks
        self._start_program = start
        self._stages: list[dict[SupervisedChild, asyncio.Task[None]]] = []
        self._hurried = asyncio.get_running_loop().create_future()
        self._frozen: Counter[str] = Counter()
        # Children that were frozen, for whoever tells of them.
        self.replaced: asyncio.Queue[Replacement] = asyncio.Queue()

    @property
    def frozen(self) -> Mapping[str, int]:
        """How often each child was frozen and replaced."""
        return {kept.name: self._frozen[kept.name] for stage in self._stages for kept in stage}

    @property
    def died(self) -> Mapping[str, int]:
        """How often each child ended although it should run; frozen ones are ended by us."""
        died: Counter[str] = Counter()
        for stage in self._stages:
            for kept in stage:
                died[kept.name] += kept.deaths
        return died

    async def start(self, children: Sequence[ChildSpec]) -> None:
        """Start a stage, return when all of it is ready, and keep it alive from then on."""
        await self.wait_started(self.launch(children))

    def launch(self, children: Sequence[ChildSpec]) -> Sequence[SupervisedChild]:
        """Start a stage without waiting for it."""
        supervised = [SupervisedChild(child, self._note_frozen, self._start_program) for child in children]
        self._stages.append({kept: self._tasks.create_task(kept.keep_alive()) for kept in supervised})
        return supervised

    async def wait_started(self, stage: Sequence[SupervisedChild]) -> None:
        """Return when all of a stage is ready."""
        starts = {kept.first_start for kept in stage}
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                while starts:
                    done, starts = await asyncio.wait(starts, return_when=asyncio.FIRST_COMPLETED)
                    _raise_first(done)
        except TimeoutError:
            unready = ", ".join(kept.name for kept in stage if not kept.first_start.done())
            raise StartError(f"{unready} did not become ready within {START_SECONDS_MAX:.0f} s.") from None

    async def wait_finished(self, name: str) -> None:
        """Wait until the last child of a name has finished its work or was given up."""
        keepers = [keeper for stage in self._stages for kept, keeper in stage.items() if kept.name == name]
        await asyncio.wait(keepers[-1:])

    def ask_to_stop(self, name: str) -> None:
        """Ask a child to stop; it is started again when its preparation has ended."""
        for stage in self._stages:
            for kept in stage:
                if kept.name == name:
                    kept.send(kept.child.program.stop_signal)

    async def stop(self) -> None:
        for stage in reversed(self._stages):
            async with asyncio.TaskGroup() as group:
                for kept, keeper in stage.items():
                    sooner = [other for one, other in stage.items() if one.child.reports_to == kept.name]
                    group.create_task(self._stop(kept, keeper, sooner))

    def hurry(self) -> None:
        """Do not wait for children that do not stop at once."""
        if not self._hurried.done():
            self._hurried.set_result(None)

    def _note_frozen(self, replacement: Replacement) -> None:
        self._frozen[replacement.child] += 1
        self.replaced.put_nowait(replacement)

    async def _stop(
        self, kept: SupervisedChild, keeper: asyncio.Task[None], sooner: Sequence[asyncio.Task[None]]
    ) -> None:
        kept.give_up()
        if kept.is_running and sooner:
            await self._outlive(sooner, seconds_max=kept.child.outlives_seconds_max)
        if not kept.is_running:
            keeper.cancel()
        program = kept.child.program
        kept.send(program.stop_signal)
        await asyncio.wait(
            {keeper, self._hurried},
            timeout=kept.child.stop_seconds_max,
            return_when=asyncio.FIRST_COMPLETED,
        )
        for number in (program.death_signal, signal.SIGKILL):
            if keeper.done():
                return
            log.warning("child_not_stopped_in_time", child=kept.name, signal=number.name)
            kept.send(number)
            await asyncio.wait({keeper}, timeout=DEATH_SIGNAL_SECONDS_MAX)
        await asyncio.wait({keeper})

    async def _outlive(self, others: Sequence[asyncio.Task[None]], *, seconds_max: float) -> None:
        """Wait until other children have ended, up to a bound, and not in a hurry."""
        ended = self._tasks.create_task(asyncio.wait(others))
        await asyncio.wait({ended, self._hurried}, timeout=seconds_max, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()


async def run_supervised(
    work: Callable[[Supervisor], Awaitable[None]], start: Start = programs.start
) -> None:
    """Run work until it ends, fails or a signal asks to stop; then stop all children."""
    # Whoever started us may ignore the ends of children: then nobody could say how one of ours ended.
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    async with asyncio.TaskGroup() as tasks:
        supervisor = Supervisor(tasks, start)
        working = tasks.create_task(_catch_failure(work(supervisor)))
        with handle_stop_signals(StopRequests(ask=working.cancel, insist=supervisor.hurry)):
            await asyncio.wait({working})
            await supervisor.stop()
    if not working.cancelled() and (failure := working.result()) is not None:
        raise failure


async def _catch_failure(work: Awaitable[None]) -> Exception | None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - raised again when the children are stopped
        return error
    return None


def _raise_first(done: set[asyncio.Future[StartError | None]]) -> None:
    for start in done:
        if (failure := start.result()) is not None:
            raise failure


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# One Ctrl-C may reach us twice: from the terminal, and passed on by the program that started us.
SAME_SECONDS = 0.5


class StopRequests:
    """Tells the first request from those that come while the stop is under way."""

    def __init__(self, *, ask: Callable[[], object], insist: Callable[[], object]) -> None:
        self._ask = ask
        self._insist = insist
        self._asked_at: float | None = None

    def receive(self, now: float) -> None:
        """Take a request; `now` is in seconds of any steady clock."""
        if self._asked_at is None:
            self._asked_at = now
            self._ask()
        elif now - self._asked_at >= SAME_SECONDS:
            self._insist()


@contextlib.contextmanager
def handle_stop_signals(requests: StopRequests) -> Generator[None]:
    """Handle the signals by which a terminal, a shell or a service manager asks a process to stop."""
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, lambda: requests.receive(loop.time()))
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
