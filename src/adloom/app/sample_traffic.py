"""The simulated visitors of the sample, a separate process that knows only the public address.

python -m adloom.app.sample_traffic DATA_DIRECTORY HOST PORT
"""

import contextlib
import os
import sys
import time
from pathlib import Path

from adloom.core.clock import SystemClock
from adloom.runtime.installation import DataDirectory, InstallationError
from adloom.runtime.random import make_system_chance, seed_chance
from adloom.runtime.settings import read_telemetry_settings
from adloom.runtime.telemetry.logs import configure_logs
from adloom.sample.manifest import FILE_NAME, Manifest
from adloom.sample.visitors.browser import Browser
from adloom.sample.visitors.traffic import Traffic

NICENESS = 10  # Real visitors come first.


def main() -> None:
    """Run until the sample is gone, or until stopped."""
    directory, host, port = DataDirectory(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
    configure_logs(read_telemetry_settings(os.environ))
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    Traffic(
        Browser(host, port),
        WatchedManifest(directory).read,
        SystemClock(),
        make_system_chance(),
        time.sleep,
        seed_chance,
    ).run()


class WatchedManifest:
    """What the sample consists of, read again when it has changed."""

    def __init__(self, directory: DataDirectory) -> None:
        self._directory = directory
        self._stamp: tuple[int, int] | None = None
        self._manifest: Manifest | None = None

    def read(self) -> Manifest | None:
        try:
            about = (self._directory.path / FILE_NAME).stat()
            stamp = (about.st_mtime_ns, about.st_ino)
            if stamp != self._stamp:
                self._manifest = self._directory.read(FILE_NAME, Manifest)
                self._stamp = stamp
        except (OSError, InstallationError):
            self._stamp = self._manifest = None
        return self._manifest


if __name__ == "__main__":
    main()
