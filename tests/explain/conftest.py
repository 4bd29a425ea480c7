"""The control plane that answers with explanations."""

from tests.support.control import admin, control

__all__ = ["admin", "control"]
