"""The control plane, for the tests of what it reports."""

from tests.support.control import admin, control

__all__ = ["admin", "control"]
