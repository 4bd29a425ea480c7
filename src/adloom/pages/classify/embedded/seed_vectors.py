"""The vectors of the seed phrases: those of the package, or computed once and kept in a file."""

import os
import tempfile
from pathlib import Path
from typing import Final

import numpy as np
import structlog

from adloom.pages.classify.embedded.encoder import DIMENSIONS, Encoder, Vectors
from adloom.pages.classify.embedded.packaged import read_packaged
from adloom.pages.classify.embedded.phrases import SeedPhrases

PHRASES_PER_STEP: Final = 256

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def load_seed_vectors(phrases: SeedPhrases, encoder: Encoder, folder: Path | None) -> Vectors:
    """Return a vector for each phrase of `list_all`; where they must be computed, 5,000 take some seconds."""
    packaged = read_packaged(phrases, encoder)
    if packaged is not None:
        return packaged
    texts = phrases.list_all()
    path = folder and folder / f"seed-vectors-{encoder.version}-{phrases.digest()}.npy"
    if path is not None:
        kept = _read(path, len(texts))
        if kept is not None:
            return kept
    steps = [texts[at : at + PHRASES_PER_STEP] for at in range(0, len(texts), PHRASES_PER_STEP)]
    vectors = np.concatenate([encoder.encode(step) for step in steps]).astype(np.float16)
    if path is not None:
        _write(path, vectors)
    return vectors.astype(np.float32)


def _read(path: Path, count: int) -> Vectors | None:
    try:
        vectors = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if vectors.shape != (count, DIMENSIONS) or vectors.dtype != np.float16 or not np.isfinite(vectors).all():
        return None
    return vectors.astype(np.float32)


def _write(path: Path, vectors: np.ndarray[tuple[int, ...], np.dtype[np.float16]]) -> None:
    """Write beside, then rename: another classifier reads all of it or nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
            np.save(file, vectors, allow_pickle=False)
        os.replace(file.name, path)  # noqa: PTH105 - as short
    except OSError as error:
        log.warning("seed_vectors_not_kept", folder=str(path.parent), error=str(error))
