"""An inbox never loops without waiting: faults that the simulation of budgets found."""

import asyncio
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.confirms.projection import NullHost
from adloom.budgets.transport.inbox import Inbox, ValkeyBroadcaster
from adloom.budgets.transport.session_store import SessionStore, StoredSessions
from adloom.budgets.transport.sessions import DeliverySessions
from simulation import loop as virtual
from simulation.faults import NO_FAULTS, Faults, Host, VirtualClock
from simulation.loop import Trace, make_random
from simulation.valkey import ValkeyServer, make_valkey
from tests.support.actors import START


class OneSession(SessionStore):
    """Has one open session, left by the worker before."""

    async def load(self) -> StoredSessions:
        return StoredSessions(open=[7], over=[], unsettled=[], leases=0)


def test_an_inbox_without_a_connection_waits_and_ends_no_session() -> None:
    async def sessions_after_a_minute() -> int:
        server = ValkeyServer(Faults(NO_FAULTS, make_random(1, "faults"), Trace()))
        server.outages.is_up = False
        valkey = make_valkey(server, Host())
        inbox = Inbox(
            valkey, OneSession(cast("Any", None)), NullHost(), ValkeyBroadcaster(valkey), VirtualClock(START)
        )
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(inbox.run(stop))
            await asyncio.sleep(60)
            stop.set()
        return inbox.sessions

    # A loop that never waits would stop the virtual clock: StuckError.
    assert virtual.run(1, sessions_after_a_minute()) == 1


@given(st.floats(0, 1e9), st.floats(0.1, 1e3))
def test_a_session_is_silent_at_its_next_silence_time_despite_rounding(at: float, silence_max: float) -> None:
    sessions = DeliverySessions(silence_max=silence_max)
    sessions.record_seen(7, at=at)

    next_at = sessions.find_next_silence()

    assert next_at is not None
    assert sessions.find_silent(at=next_at) == [7]
