"""`python -I -S forked_command.py SERVER MODULE WORDS…` is `python -m MODULE WORDS…` for a shell, by `fork_server`."""

import json
import os
import socket
import sys

asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asking.connect(f"\0{sys.argv[1]}")
order = {
    "parent": None,
    "module": sys.argv[2],
    "words": sys.argv[3:],
    "cwd": os.getcwd(),  # noqa: PTH109 - `pathlib` takes longer than all of this
    "environment": dict(os.environ),
}
socket.send_fds(asking, [json.dumps(order).encode()], [0, 1, 2])
said = None
while said is None:
    try:
        said = asking.recv(100_000)  # Its code; or why it was not forked.
    except KeyboardInterrupt:  # Ctrl-C reaches us, and not what is forked.
        asking.send(b"interrupt")
if not said.isdigit():
    os.write(2, said)
os._exit(int(said) if said.isdigit() else 1)
