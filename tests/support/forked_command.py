"""`python -I -S forked_command.py SERVER WORDS…` is `python -m adloom WORDS…` for a shell, by `fork_server`."""

import json
import os
import socket
import sys

asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asking.connect(f"\0{sys.argv[1]}")
order = {
    "parent": None,
    "module": "adloom",
    "words": sys.argv[2:],
    "cwd": os.getcwd(),  # noqa: PTH109 - `pathlib` takes longer than all of this
    "environment": dict(os.environ),
}
socket.send_fds(asking, [json.dumps(order).encode()], [0, 1, 2])
os._exit(int(asking.recv(32) or b"1"))
