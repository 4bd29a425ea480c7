"""Several processes append groups to one log: their ids, on virtual time."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

from adloom.events.log.stream import ValkeyEventLog
from adloom.runtime.failover.dedicated_connection import DedicatedConnection
from adloom.runtime.valkey import Valkey
from simulation import loop as virtual
from simulation.event_log import EventLogClient, EventLogServer, unpack_commands
from simulation.faults import NO_FAULTS, Faults, VirtualClock
from simulation.loop import Trace, make_random

EVENTS = [b"%d" % number for number in range(30)]


class Line:
    """A connection on which no time passes."""

    def __init__(self, server: EventLogServer) -> None:
        self._server = server

    async def execute_packed(self, packed: bytes, count: int) -> Sequence[Any]:
        commands = unpack_commands(packed)
        assert len(commands) == count
        return self._server.execute(commands)


def make_logs(count: int) -> tuple[EventLogServer, list[ValkeyEventLog]]:
    faults = Faults(NO_FAULTS, make_random(1, "faults"), Trace())
    server = EventLogServer(faults, VirtualClock(datetime(2026, 11, 15, tzinfo=UTC)))
    client, line = cast("Valkey", EventLogClient()), cast("DedicatedConnection", Line(server))
    return server, [ValkeyEventLog(client, line) for _ in range(count)]


def test_a_process_that_comes_second_in_a_millisecond_chooses_the_next_block_of_it() -> None:
    async def append() -> None:
        server, logs = make_logs(2)
        for event_log in logs:
            await event_log.append(EVENTS)
        assert server.scripts == 2, "they do not know the server's time yet"
        await asyncio.sleep(0.01)

        for event_log in logs:
            await event_log.append(EVENTS)

        assert (server.refused, server.scripts, server.groups) == (1, 2, 4)
        assert server.repeated_ids == []
        events = server.read_after("0-0", None, 1_000)
        assert [entry.data for entry in events] == EVENTS * 4

    virtual.run(1, append())


def test_where_many_processes_append_in_one_millisecond_the_script_helps() -> None:
    async def append() -> None:
        server, logs = make_logs(5)
        for event_log in logs:
            await event_log.append(EVENTS)
        await asyncio.sleep(0.01)

        for event_log in logs:
            await event_log.append(EVENTS)

        assert (server.refused, server.scripts, server.groups) == (7, 8, 10)
        assert server.repeated_ids == []
        assert [entry.data for entry in server.read_after("0-0", None, 1_000)] == EVENTS * 10

    virtual.run(1, append())
