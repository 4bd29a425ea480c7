"""Loads the nets of strategies, and with them NumPy: at the first decision, and not with the worker."""

from adloom.bidding.ports import Nets


def load_nets() -> Nets:
    from adloom.bidding import shipped  # noqa: PLC0415 - NumPy takes 20 MB

    return shipped.load_nets()
