"""The control plane that answers what a change would bring."""

from tests.support.control import admin, advertiser, control

__all__ = ["admin", "advertiser", "control"]
