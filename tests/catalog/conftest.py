"""The tests of this folder use a control plane."""

from tests.support.control import admin, advertiser, control

__all__ = ["admin", "advertiser", "control"]
