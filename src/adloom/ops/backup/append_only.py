"""The files of a Valkey that runs, as of one moment.

Valkey appends every command to the last of its files before it answers. So the files that its manifest names, the last
of them up to the length that it has now, are what Valkey would have if it died now. A command that is cut off at the
end is dropped when it is loaded; its answer was never sent.
"""

import io
import os
from pathlib import Path
from typing import IO, Final, NamedTuple

from adloom.ops.backup.archive import BackupError

FOLDER: Final = "appendonlydir"
MANIFEST_SUFFIX: Final = ".manifest"
TRIES_MAX: Final = 20


class FixedFile(NamedTuple):
    """The first bytes of a file that is open, so it may even be removed meanwhile."""

    name: str
    file: IO[bytes]
    size: int


def open_append_only(valkey_folder: Path) -> list[FixedFile]:
    """Open the files as of now; none if there was never anything in Valkey. The caller closes them."""
    folder = valkey_folder / FOLDER
    manifests = sorted(folder.glob(f"*{MANIFEST_SUFFIX}")) if folder.is_dir() else []
    if not manifests:
        return []
    [manifest] = manifests
    for _ in range(TRIES_MAX):
        text = manifest.read_bytes()
        opened = _open_all(folder, parse_manifest(text.decode()))
        # Valkey may just have rewritten its files: then these are not of one moment.
        if opened is not None and manifest.read_bytes() == text:
            fixed = [
                FixedFile(Path(file.name).name, file, os.fstat(file.fileno()).st_size) for file in opened
            ]
            return [FixedFile(manifest.name, io.BytesIO(text), len(text)), *fixed]
        for file in opened or ():
            file.close()
    raise BackupError(f"Valkey rewrites {folder} again and again. Try again in a moment.")


def parse_manifest(text: str) -> list[str]:
    """Return the files of a manifest, without those that Valkey is about to remove."""
    names: list[str] = []
    for line in text.splitlines():
        words = line.split()
        fields = dict(zip(words[::2], words[1::2], strict=False))
        if fields.get("type") in {"b", "i"} and "file" in fields:
            names.append(fields["file"].strip('"'))
    return names


def _open_all(folder: Path, names: list[str]) -> list[IO[bytes]] | None:
    opened: list[IO[bytes]] = []
    try:
        opened.extend((folder / Path(name).name).open("rb") for name in names)
    except FileNotFoundError:
        for file in opened:
            file.close()
        return None
    return opened
