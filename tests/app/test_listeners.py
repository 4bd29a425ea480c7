"""Listening sockets: inherited from a supervisor, or bound."""

import socket

import pytest

from adloom.app.listeners import (
    LISTEN_FD,
    ListenError,
    bind_socket,
    get_port,
    listen,
    take_socket,
)
from adloom.runtime.ports import find_port

LOOPBACK = "127.0.0.1"


def test_without_a_supervisor_the_process_binds_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LISTEN_FD, raising=False)
    port = find_port()

    with take_socket(LOOPBACK, port) as listener:
        assert get_port(listener) == port
        socket.create_connection((LOOPBACK, port)).close()


def test_the_socket_of_a_supervisor_is_used_and_not_inherited_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with bind_socket(LOOPBACK, 0) as bound:
        monkeypatch.setenv(LISTEN_FD, str(socket.dup(bound.fileno())))

        with take_socket("ignored", 1) as listener:
            assert get_port(listener) == get_port(bound)
            assert not listener.get_inheritable()


def test_all_sockets_that_share_a_port_get_connections() -> None:
    with listen(LOOPBACK, 0, count=2) as listeners:
        address = (LOOPBACK, get_port(listeners[0]))
        for listener in listeners:
            listener.setblocking(False)  # noqa: FBT003 - the standard library's own

        clients = [socket.create_connection(address) for _ in range(64)]

        accepted = [listener.accept()[0] for listener in listeners]
        for connection in (*clients, *accepted):
            connection.close()


@pytest.mark.parametrize("count", [1, 2])
def test_the_error_about_a_busy_port_names_the_port_and_its_flag(count: int) -> None:
    with (
        listen(LOOPBACK, 0, count=count) as listeners,
        pytest.raises(ListenError, match=rf"Port {get_port(listeners[0])} .* --delivery-port"),
        listen(LOOPBACK, get_port(listeners[0]), count=count, flag="--delivery-port"),
    ):
        pass


@pytest.mark.parametrize("port", [0, 8080])
def test_the_error_about_a_foreign_address_names_it(port: int) -> None:
    with pytest.raises(ListenError, match=r"Cannot listen on 192\.0\.2\.1"):
        bind_socket("192.0.2.1", port)
