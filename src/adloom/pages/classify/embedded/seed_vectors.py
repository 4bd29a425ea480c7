"""The vectors of the seed phrases: those that come with the package, or computed once and kept in a file.

`python -m adloom.pages.classify.embedded.seed_vectors` writes them anew after a change of phrases or encoder.
"""

import io
import os
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np
import structlog

from adloom.pages.classify.embedded.encoder import DIMENSIONS, Encoder, SentenceEncoder, Vectors
from adloom.pages.classify.embedded.phrases import SeedPhrases, load_phrases
from adloom.runtime.process.tuning import use_one_thread

PHRASES_PER_STEP: Final = 256
log: structlog.stdlib.BoundLogger = structlog.get_logger()
FILE: Final = "seed-vectors.npz"
# Numbers of 8 bits, with one factor a row: a quarter of the size, and similarities are the same to 0.002.
STEPS: Final = 127


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


def describe_key(phrases: SeedPhrases, encoder: Encoder) -> str:
    return f"{encoder.version}-{phrases.digest()}"


def read_packaged(phrases: SeedPhrases, encoder: Encoder) -> Vectors | None:
    """Return the package's vectors of these phrases; None where they are of others, or of another encoder."""
    file = resources.files("adloom.pages.classify").joinpath("data", FILE)
    if not file.is_file():
        return None
    with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as kept:
        if str(kept["key"]) != describe_key(phrases, encoder):
            return None
        vectors = kept["steps"].astype(np.float32) * kept["factors"].astype(np.float32)[:, None]
    return vectors if vectors.shape[1] == DIMENSIONS else None


def write_packaged(path: Path, phrases: SeedPhrases, encoder: Encoder) -> None:
    vectors = encoder.encode(phrases.list_all())
    factors = np.abs(vectors).max(axis=1) / STEPS
    steps = np.rint(vectors / factors[:, None]).astype(np.int8)
    np.savez_compressed(
        path, key=np.array(describe_key(phrases, encoder)), steps=steps, factors=factors.astype(np.float32)
    )


if __name__ == "__main__":
    use_one_thread()
    target = Path(__file__).parent.parent / "data" / FILE
    write_packaged(target, load_phrases(), SentenceEncoder())
    sys.stdout.write(f"{target}: {target.stat().st_size:,} bytes\n")
