"""Loads the nets of strategies: those that come with the package, and for `fleet` the operator's own if they are whole.

NumPy takes 20 MB, so it is loaded at the first decision and not with the worker; to check own weights needs it at once.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Final

import msgspec
import structlog

from adloom.bidding.ports import Nets
from adloom.bidding.weights_card import find_doubt
from adloom.runtime.process.tuning import use_one_thread
from adloom.runtime.settings import FLEET_WEIGHTS, read_settings

OWN_BYTES_MAX: Final = 1 << 20  # They have 33 KB.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class FleetWeights(msgspec.Struct, frozen=True):
    """The operator's own weights of `fleet`, if they can be used, or why they cannot; neither if there are none."""

    own: bytes | None = None
    problem: str | None = None


SHIPPED: Final = FleetWeights()


class FleetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the operator's own weights are, for commands that decide as workers do."""

    fleet_weights: Annotated[Path | None, FLEET_WEIGHTS] = None


def load_nets(weights: FleetWeights = SHIPPED) -> Nets:
    use_one_thread()
    from adloom.bidding import shipped  # noqa: PLC0415 - NumPy takes 20 MB

    return shipped.load_nets() if weights.own is None else shipped.build_with_own_fleet(weights.own)


def cache_nets(weights: FleetWeights) -> Callable[[], Nets]:
    """Return what loads the nets at its first call."""
    return cache(lambda: load_nets(weights))


def read_fleet_weights(path: Path | None) -> FleetWeights:
    """Read the weights that a setting names; if they cannot be used, the log says why, once."""
    weights = _read(path)
    if weights.problem is not None:
        log.warning("own_weights_not_used", reason=weights.problem, used="the weights of the package")
    return weights


def find_fleet_weights(variables: Mapping[str, str]) -> FleetWeights:
    """Return the weights that workers with these settings use, without a line of the log."""
    return _read(read_settings(FleetSettings, variables, process="adloom").fleet_weights)


def _read(path: Path | None) -> FleetWeights:
    if path is None:
        return SHIPPED
    try:
        with path.open("rb") as file:
            data = file.read(OWN_BYTES_MAX + 1)
    except OSError as error:
        return FleetWeights(problem=f"{path} cannot be read: {error.strerror or error}")
    doubt = find_unusable(data)
    return FleetWeights(data) if doubt is None else FleetWeights(problem=f"{path}: {doubt}")


def find_unusable(data: bytes) -> str | None:
    """Return why weights of `fleet` cannot be used: their card, their hash, their form, or a number that is none."""
    doubt = find_doubt(data, "fleet")
    if doubt is not None:
        return doubt
    use_one_thread()
    from adloom.bidding import shipped  # noqa: PLC0415 - NumPy takes 20 MB

    fleet = shipped.build_nets(data, None).fleet
    return fleet if isinstance(fleet, str) else None
