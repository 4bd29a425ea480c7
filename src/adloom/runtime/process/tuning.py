"""Tuning of a process: garbage collector, memory that is free, limit of open files, NumPy's threads, standard streams.

Almost no object here is in a cycle, and a compiled catalog stays: 100,000 campaigns are 600,000 objects, and a
full collection walks over them for half a second in which no request is answered.
"""

import ctypes
import gc
import os
import resource
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

# New objects between two collections: of a process that answers requests, and of one that works in batches. The latter
# keeps the newest 40,000 events, with some 200,000 objects.
REQUEST_THRESHOLD: Final = 20_000
BATCH_THRESHOLD: Final = 300_000


def freeze_startup_objects(allocations: int) -> None:
    """Exclude all present objects from collection, and collect after so many new ones."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(allocations)


def freeze_new_objects() -> None:
    """Exclude the objects made since; quick, and their cycles are never freed."""
    gc.freeze()


def give_memory_back() -> None:
    """Free what nothing refers to any more, and return what the allocator keeps of it to the system."""
    gc.collect()
    if sys.platform == "linux":
        # Only glibc has it.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


# Beyond this a process runs out of memory first; some systems set no bound at all.
OPEN_FILES_MAX = 65_536


def raise_open_files() -> int:
    """Raise the limit of open files to what the system allows: a shell's default is a few hundred."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = OPEN_FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES_MAX)
    if soft == resource.RLIM_INFINITY or soft >= allowed:
        return soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


# For what a process opens itself: Valkey, the spool, PostgreSQL, logs.
DESCRIPTORS_RESERVED = 256


def count_connections_max() -> int:
    """Return how many connections a process may have, so that it can still open what it needs itself."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = OPEN_FILES_MAX if soft == resource.RLIM_INFINITY else soft
    return max(allowed - DESCRIPTORS_RESERVED, allowed // 2)


# NumPy's linear algebra reads these as it is loaded.
THREAD_VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def use_one_thread() -> None:
    """Keep NumPy to one thread, before it is imported: with more, small matrices take longer, and all cores."""
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, "1")


@contextmanager
def pause_gc() -> Generator[None]:
    """Keep the garbage collector off while many objects are made; what requests leave behind is collected afterwards."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def open_standard_streams() -> None:
    # Our parent may have closed one. It leaves its number to the next file that is opened, and children log to it.
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))
