"""Adloom: a self-hosted ad platform that does not track visitors."""

from typing import Final

from adloom.runtime.process.lean_imports import install_lean_imports

VERSION: Final = "0.1.0"

install_lean_imports()
