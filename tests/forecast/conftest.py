"""The control plane that answers what a change would bring."""

from tests.support.control import admin, control

__all__ = ["admin", "control"]
