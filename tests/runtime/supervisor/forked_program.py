"""A program to be forked: it notes what it finds, and then waits or ends as its first argument says."""

import atexit
import gc
import json
import os
import random
import signal
import sys
import threading
from pathlib import Path

from adloom.core.ids import SystemIds


def main() -> None:
    end, notes, *fds = sys.argv[1:]
    found = {
        "pid": os.getpid(),
        "arguments": sys.argv[1:],
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "inherited": [os.read(int(fd), 100).decode() for fd in fds],
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "is_collected": gc.isenabled(),
        "user": os.getuid(),
        "threads": threading.active_count(),
        "id": SystemIds().make().hex,
        "chance": random.random(),  # noqa: S311 - what a library may draw from
    }
    sys.stdout.write("output\n")
    with Path(notes).open("a") as file:
        file.write(json.dumps(found) + "\n")
    if end == "wait":
        signal.pause()
    elif end == "fail":
        sys.exit("no room")
    atexit.register(lambda: sys.stdout.write("the end\n"))


if __name__ == "__main__":
    main()
