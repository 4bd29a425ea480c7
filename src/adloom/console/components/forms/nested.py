"""The fields of objects within an object, as a form has them."""

# pure

from collections.abc import Mapping
from typing import Any


def flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Add the fields of objects within, each called by both names: `pacing.warmup`."""
    flat = dict(values)
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{part}": one for part, one in value.items()}  # pyright: ignore[reportUnknownVariableType]  whatever it has
    return flat


def nest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Make objects of the fields that are called by two names."""
    nested: dict[str, Any] = {}
    for name, value in values.items():
        outer, _, inner = name.partition(".")
        if inner:
            nested.setdefault(outer, {})[inner] = value
        else:
            nested[name] = value
    return nested
