"""Listening sockets, inherited or bound."""

import socket

import pytest

from adloom.app.listeners import (
    LISTEN_FD,
    ListenError,
    bind_socket,
    listen,
    port_of,
    take_socket,
)
from adloom.runtime.ports import free_port

LOOPBACK = "127.0.0.1"


def test_without_a_supervisor_the_port_is_bound_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LISTEN_FD, raising=False)
    port = free_port()

    with take_socket(LOOPBACK, port) as listener:
        assert port_of(listener) == port
        socket.create_connection((LOOPBACK, port)).close()


def test_a_supervisors_socket_is_taken_over_and_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with bind_socket(LOOPBACK, 0) as bound:
        monkeypatch.setenv(LISTEN_FD, str(socket.dup(bound.fileno())))

        with take_socket("ignored", 1) as listener:
            assert port_of(listener) == port_of(bound)
            assert not listener.get_inheritable()


def test_sockets_that_share_a_port_are_all_given_connections() -> None:
    with listen(LOOPBACK, 0, count=2) as listeners:
        address = (LOOPBACK, port_of(listeners[0]))
        for listener in listeners:
            listener.setblocking(False)  # noqa: FBT003 - the standard library's own

        clients = [socket.create_connection(address) for _ in range(64)]

        accepted = [listener.accept()[0] for listener in listeners]
        for connection in (*clients, *accepted):
            connection.close()


@pytest.mark.parametrize("count", [1, 2])
def test_a_busy_port_is_named_with_the_flag_that_changes_it(count: int) -> None:
    with (
        listen(LOOPBACK, 0, count=count) as listeners,
        pytest.raises(ListenError, match=rf"Port {port_of(listeners[0])} .* --delivery-port"),
        listen(LOOPBACK, port_of(listeners[0]), count=count, flag="--delivery-port"),
    ):
        pass


@pytest.mark.parametrize("port", [0, 8080])
def test_an_address_that_is_not_ours_is_named(port: int) -> None:
    with pytest.raises(ListenError, match=r"Cannot listen on 192\.0\.2\.1"):
        bind_socket("192.0.2.1", port)
