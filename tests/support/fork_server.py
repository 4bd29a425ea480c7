"""A process that loads our code once, and from which tests fork our programs: loading takes most of a second each time.

`python -P -m tests.support.fork_server REQUESTS_FD LIFE_FD`. A request is a connection with an order, and with
standard input, output and error beside it. What is forked becomes a child of the process that asked, which is told
its number; or, for a shell, the end of it is reported. It ends when nobody has the other end of the second descriptor.
"""

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

ORDER_BYTES_MAX = 200_000
STREAMS = 3
COMMAND = "adloom"
WORKER = "tests.support.worker_process"
# What programs import when they run.
LOADED_FOR = {
    "adloom.app.control": ("adloom.app.control", "adloom.console.mount"),
    COMMAND: (
        "adloom.cli.main",
        "adloom.app.worker",
        "adloom.cli.ledger_report",
        "adloom.cli.replay",
        "adloom.ops.backup.archive",
        "adloom.ops.doctor",
        "adloom.sample.admin",
        "rich.markdown",
    ),
}


def main() -> None:
    requests, life = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody asks how those between us and programs end.
    gc.disable()
    while True:
        ready, _, _ = select.select([requests, life], [], [])
        if life in ready:
            return
        connection, _ = requests.accept()
        data, fds, _, _ = socket.recv_fds(connection, ORDER_BYTES_MAX, STREAMS)
        if len(fds) == STREAMS:
            order = json.loads(data)
            if _is_loaded(connection, order) and _is_forked(connection, order):
                requests.close()
                os.close(life)
                connection.close()
                _become(order, fds)
                _run(order["module"])
                return
        for fd in fds:
            os.close(fd)
        connection.close()


def _is_loaded(connection: socket.socket, order: dict[str, Any]) -> bool:
    """Load what a program needs, and return whether that was possible; if not, say why."""
    program = order["module"]
    try:
        for module in LOADED_FOR.get(program, (program,)):
            importlib.import_module(module)
        if program == WORKER:
            os.chdir(order["cwd"])
            importlib.import_module(program).load(tuple(order["words"]))
    except Exception:  # noqa: BLE001 - whatever a module raises
        connection.send(traceback.format_exc().encode())
        return False
    return True


def _is_forked(connection: socket.socket, order: dict[str, Any]) -> bool:
    """Fork a program, and return whether this is it."""
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "what is loaded starts no threads"
    gc.freeze()  # What is here now is no garbage: the collectors of programs would write to each object.
    if os.fork():
        return False
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    program = os.fork()
    parent = order["parent"]
    if program and parent:
        os._exit(0)
    if program:
        _report_end(connection, program)
    if parent:
        while os.getppid() != parent:
            time.sleep(0.001)
        connection.send(str(os.getpid()).encode())
    return True


def _report_end(connection: socket.socket, program: int) -> None:
    """Say how a program ends; interrupt it if that is asked for; without anybody to say it to, end it."""
    end = os.pidfd_open(program)
    while end not in select.select([connection, end], [], [])[0]:
        if not connection.recv(ORDER_BYTES_MAX):
            os.kill(program, signal.SIGTERM)
            break
        os.kill(program, signal.SIGINT)
    code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    try:
        connection.send(str(code if code >= 0 else 128 - code).encode())
    finally:
        os._exit(0)


def _become(order: dict[str, Any], fds: list[int]) -> None:
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    for fd in fds:
        if fd >= STREAMS:
            os.close(fd)
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    os.chdir(order["cwd"])
    program = importlib.import_module(order["module"])
    sys.argv = [str(program.__file__).replace("__init__", "__main__"), *order["words"]]
    sys.modules["__main__"].__package__ = program.__package__  # By both a command knows its name.
    gc.enable()


def _run(module: str) -> None:
    """Run a program to its end, without taking the modules apart where that can be left out."""
    code: Any = 0
    try:
        importlib.import_module("adloom.cli.main" if module == COMMAND else module).main()
    except SystemExit as exited:
        code = exited.code or 0
    if not isinstance(code, int):
        raise SystemExit(code)
    if threading.active_count() > 1:
        sys.exit(code)
    atexit._run_exitfuncs()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - there is no other way
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
