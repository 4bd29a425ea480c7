"""Slugs that are suggested from what people call a thing."""

# pure

import re
import unicodedata
from typing import Final

SLUG_LENGTH_MAX: Final = 60  # Shorter than the API allows: it is typed and read.


def make_slug(label: str) -> str:
    """Make a slug of a label; a label without Latin letters or digits becomes `place`."""
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:SLUG_LENGTH_MAX].strip("-") or "place"


def suggest_slug(label: str, current: str, suggested: str) -> str:
    """Return the slug for a label while nobody has typed another one, else the one that was typed."""
    if current and current != suggested:
        return current
    return make_slug(label) if label.strip() else ""
