"""Weights files: a card that says what they were trained on and how they did, their hash, and the numbers."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from adloom.bidding.weights_card import MAGIC, WeightsCard, WeightsError, read_card

Array = npt.NDArray[np.floating[Any]]


def encode_weights(card: WeightsCard, arrays: Mapping[str, Array]) -> bytes:
    body = b"".join(array.astype("<f4").tobytes() for array in arrays.values())
    signed = msgspec.structs.replace(card, sha256=hashlib.sha256(body).hexdigest())
    return MAGIC + msgspec.json.encode(signed) + b"\n" + body


def decode_weights(
    data: bytes, kind: str, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[WeightsCard, dict[str, Array]]:
    """Return the card and the arrays, if they are whole: of this kind, these shapes, and their hash."""
    card = read_card(data)
    if card.kind != kind:
        raise WeightsError(f"weights of {card.kind!r}")
    body = data[len(MAGIC) :].split(b"\n", 1)[1]
    if hashlib.sha256(body).hexdigest() != card.sha256:
        raise WeightsError("not those of their hash")
    numbers = np.frombuffer(body, dtype="<f4").astype(np.float32)
    if len(numbers) != sum(_compute_size(shape) for shape in shapes.values()):
        raise WeightsError("of another form")
    if not np.isfinite(numbers).all():
        raise WeightsError("not all are numbers")
    arrays, start = dict[str, Array](), 0
    for name, shape in shapes.items():
        arrays[name] = numbers[start : start + _compute_size(shape)].reshape(shape)
        start += _compute_size(shape)
    return card, arrays


def _compute_size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape))
