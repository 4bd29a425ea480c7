"""Keeps NumPy to one thread: with more, the encoder takes longer, and all cores."""

import os
from typing import Final

# NumPy's linear algebra reads these as it is loaded.
THREAD_VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def use_one_thread() -> None:
    """Set it for this process; to be called before NumPy is imported."""
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, "1")
