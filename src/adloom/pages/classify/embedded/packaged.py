"""The vectors of the seed phrases that come with the package, so that no start has to compute them.

`python -m adloom.pages.classify.embedded.packaged` writes them anew after a change of phrases or encoder.
"""

import io
import sys
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np

from adloom.pages.classify.embedded.encoder import DIMENSIONS, Encoder, SentenceEncoder, Vectors
from adloom.pages.classify.embedded.phrases import SeedPhrases, load_phrases
from adloom.runtime.process.tuning import use_one_thread

FILE: Final = "seed-vectors.npz"
# Numbers of 8 bits, with one factor a row: a quarter of the size, and similarities are the same to 0.002.
STEPS: Final = 127


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
