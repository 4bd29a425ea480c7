"""What a weights file says about itself, read without the numbers: whether a strategy was trained at all."""

import functools
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Final

import msgspec

MAGIC: Final = b"adloom-weights 1\n"


class WeightsError(Exception):
    """Not a weights file, of another kind or form, or not the numbers that its hash names."""


class WeightsCard(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a weights file says about itself."""

    kind: str
    sha256: str = ""
    data: str
    train_days: tuple[int, ...]
    held_out_days: tuple[int, ...]
    seed: int
    steps: int
    scores: Mapping[str, float]  # On the held-out days, by what was measured.
    trained_on: str  # The date.


def read_card(data: bytes) -> WeightsCard:
    if not data.startswith(MAGIC):
        raise WeightsError("no weights file")
    head = data[len(MAGIC) :].split(b"\n", 1)[0]
    try:
        return msgspec.json.decode(head, type=WeightsCard)
    except msgspec.DecodeError as error:
        raise WeightsError("the card cannot be read") from error


def find_doubt(data: bytes | None, kind: str) -> str | None:
    """Return why weights are not to be used with money; None if they are whole and were trained."""
    if data is None:
        return "weights missing"
    try:
        card = read_card(data)
    except WeightsError as error:
        return f"weights: {error}"
    if card.kind != kind:
        return f"weights: weights of {card.kind!r}"
    body = data[len(MAGIC) :].split(b"\n", 1)[1]
    if hashlib.sha256(body).hexdigest() != card.sha256:
        return "weights: not those of their hash"
    return None if card.steps > 0 and card.scores else "weights: never trained"


def read_shipped(kind: str) -> bytes | None:
    path = resources.files("adloom.bidding").joinpath("data", f"{kind}.weights")
    return path.read_bytes() if path.is_file() else None


@functools.cache
def find_shipped_doubt(kind: str) -> str | None:
    return find_doubt(read_shipped(kind), kind)
