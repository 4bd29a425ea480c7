"""A mail room, or whoever keeps the sessions, never goes round in circles: found by the simulation of budgets."""

import asyncio
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.charges.projection import NullHost
from adloom.budgets.transport.inbox import Inbox, ValkeyBroadcaster
from adloom.budgets.transport.session_store import SessionStore, StoredSessions
from adloom.budgets.transport.sessions import DeliverySessions
from simulation import loop as virtual
from simulation.faults import NO_FAULTS, Faults, Host, VirtualClock
from simulation.loop import Trace, seeded
from simulation.valkey import ValkeyServer, valkey_of
from tests.support.actors import START


class OneSession(SessionStore):
    """Knows of one delivery process, as whoever kept the sessions before has left it."""

    async def load(self) -> StoredSessions:
        return StoredSessions(open=[7], over=[], unsettled=[], leases=0)


def test_a_mail_room_waits_where_it_cannot_hear_whose_silence_it_would_judge() -> None:
    async def kept_for_a_minute() -> int:
        server = ValkeyServer(Faults(NO_FAULTS, seeded(1, "faults"), Trace()))
        server.outages.is_up = False
        valkey = valkey_of(server, Host())
        room = Inbox(
            valkey, OneSession(cast("Any", None)), NullHost(), ValkeyBroadcaster(valkey), VirtualClock(START)
        )
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(room.run(stop))
            await asyncio.sleep(60)
            stop.set()
        return room.sessions

    # Somebody who never waits would stop the clock of this loop: StuckError.
    assert virtual.run(1, kept_for_a_minute()) == 1


@given(st.floats(0, 1e9), st.floats(0.1, 1e3))
def test_who_was_waited_for_is_silent_then_however_seconds_are_rounded(at: float, silence_max: float) -> None:
    sessions = DeliverySessions(silence_max=silence_max)
    sessions.record_heard(7, at=at)

    next_at = sessions.next_silence_at()

    assert next_at is not None
    assert sessions.find_silent(at=next_at) == [7]
