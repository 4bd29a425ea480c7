"""The control plane, for tests of operations."""

from tests.support.control import admin, advertiser, control, publisher

__all__ = ["admin", "advertiser", "control", "publisher"]
