"""Adloom: a self-hosted ad platform that never follows its readers."""

from typing import Final

VERSION: Final = "0.1.0"
