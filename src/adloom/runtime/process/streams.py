"""The standard streams of a process, which whoever starts it may have closed."""

import os
import sys


def open_standard_streams() -> None:
    # A stream that was closed leaves its number to the next file that is opened, and children log to it.
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))
