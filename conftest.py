"""Lets pytest keep the bytecode of everything, its own plugins aside: this file is read before all others of ours.

Some environments forbid that, such as containers. But a run starts some hundred processes, and each would compile
everything again.
"""

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def keep_bytecode() -> None:
    """Share compiled bytecode between processes, also where the environment or a read-only source forbids it."""
    if not os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        return
    if os.access(ROOT, os.W_OK):
        folder = ROOT / ".pytest_cache" / "d" / "bytecode"
        folder.mkdir(parents=True, exist_ok=True)
    else:
        folder = Path(tempfile.gettempdir()) / f"adloom-bytecode-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        assert folder.stat().st_uid == os.getuid(), f"{folder} is another user's"
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(folder)
    sys.dont_write_bytecode = False


keep_bytecode()
