"""A program that waits to be interrupted, for tests of programs that are forked."""

import time


def main() -> None:
    try:
        print("asleep", flush=True)  # noqa: T201 - a test waits for it
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted", flush=True)  # noqa: T201 - likewise
