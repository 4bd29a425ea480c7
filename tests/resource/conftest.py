"""Tests of this folder talk to a control plane."""

from tests.support.control import admin, control

__all__ = ["admin", "control"]
