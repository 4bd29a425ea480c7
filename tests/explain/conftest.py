"""Explanations are asked of a control plane."""

from tests.support.control import admin, control

__all__ = ["admin", "control"]
