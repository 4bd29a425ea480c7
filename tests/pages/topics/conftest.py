"""The tests of this folder use a control plane."""

from tests.support.control import admin, control

__all__ = ["admin", "control"]
