"""The nets that come with the package; read once, at first use."""

import functools

from adloom.bidding import dqn, network
from adloom.bidding.dqn import DqnNet
from adloom.bidding.fleet import FleetRunner
from adloom.bidding.network import FleetNet
from adloom.bidding.ports import DqnPort, FleetPort, Nets
from adloom.bidding.weights import WeightsError, decode_weights
from adloom.bidding.weights_card import find_doubt, read_shipped


@functools.cache
def load_nets() -> Nets:
    return build_nets(read_shipped("fleet"), read_shipped("dqn"))


def build_beside_shipped(fleet: bytes) -> Nets:
    """Build the nets with other weights of `fleet` than those of the package."""
    return Nets(_build_fleet(fleet), load_nets().dqn)


def build_nets(fleet: bytes | None, dqn_data: bytes | None) -> Nets:
    """Build what decisions use; a file that is missing or damaged becomes the reason of the fallback."""
    return Nets(_build_fleet(fleet), _build_dqn(dqn_data))


def decode_fleet(data: bytes) -> FleetNet:
    return FleetNet(**decode_weights(data, "fleet", network.SHAPES)[1])


def _build_fleet(data: bytes | None) -> FleetPort | str:
    if data is None:
        return "weights missing"
    try:
        return FleetRunner(decode_fleet(data))
    except WeightsError as error:
        return f"weights: {error}"


def _build_dqn(data: bytes | None) -> DqnPort | str:
    doubt = find_doubt(data, "dqn")
    if doubt is not None or data is None:
        return doubt or "weights missing"
    try:
        return DqnNet(**decode_weights(data, "dqn", dqn.SHAPES)[1])
    except WeightsError as error:
        return f"weights: {error}"
