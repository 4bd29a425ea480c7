"""Sockets that share a port: those of silent processes get no connections."""

import socket
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.app.listeners import get_port, listen
from adloom.app.up.watching import ListenerGroup, choose_open

CONNECTIONS = 48


def accepted(listeners: list[socket.socket]) -> list[int]:
    """Connect some times, and return how many connections each socket has got."""
    address = ("127.0.0.1", get_port(listeners[0]))
    clients = [socket.create_connection(address) for _ in range(CONNECTIONS)]
    counts = [0 for _ in listeners]
    for number, listener in enumerate(listeners):
        listener.setblocking(False)  # noqa: FBT003 - as the system declares it
        try:
            while True:
                listener.accept()[0].close()
                counts[number] += 1
        except BlockingIOError:
            continue
    for client in clients:
        client.close()
    return counts


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a program choose")
def test_a_silent_process_gets_no_connections_until_it_responds_again() -> None:
    with listen("127.0.0.1", 0, count=3) as listeners:
        group = ListenerGroup(listeners)

        group.set_responding(1, is_responding=False)
        without_one = accepted(listeners)
        group.set_responding(0, is_responding=False)
        with_one = accepted(listeners)
        group.set_responding(2, is_responding=False)
        all_silent = accepted(listeners)
        for number in range(3):
            group.set_responding(number, is_responding=True)
        all_responding = accepted(listeners)

    assert without_one[1] == 0
    assert min(without_one[0], without_one[2]) > 0
    assert with_one == [0, 0, CONNECTIONS]
    # Where no process responds, connections wait in all sockets.
    assert sum(all_silent) == sum(all_responding) == CONNECTIONS
    assert all(all_responding)


@given(st.integers(1, 64).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))))
def test_there_is_always_a_socket_that_is_open(case: tuple[int, set[int]]) -> None:
    count, silent = case

    chosen = choose_open(count, silent)

    assert chosen
    assert not silent & set(chosen) or len(silent) == count
