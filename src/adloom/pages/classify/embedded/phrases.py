"""The seed phrases of the package, by category, and how often pages are about one."""

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from importlib import resources
from typing import Final

import msgspec

from adloom.taxonomy.iab import load_content

ROOT_PHRASES: Final = "root-phrases.tsv"
NODE_PHRASES: Final = "tier2-phrases.tsv"
NOTICE_PHRASES: Final = "notice-phrases.tsv"
# How much more, or less, often pages are about a root than the phrases alone would say. Added to a root's logit, in
# which a similarity of 0.1 counts 1.5. The roots that most news is about gain, those that few pages are about as their
# main subject lose.
PRIOR: Final[Mapping[str, float]] = {
    "52": 0.75,  # Business and Finance
    "JLBCU7": 0.75,  # Entertainment
    "386": 0.75,  # Politics
    "596": 0.75,  # Technology & Computing
    "483": 0.3,  # Sports
    "1": 0.1,  # Automotive
    "132": 0.1,  # Education
    "210": 0.1,  # Food & Drink
    "223": 0.1,  # Healthy Living
    "274": 0.1,  # Home & Garden
    "286": 0.1,  # Medical Health
    "391": 0.1,  # Personal Finance
    "464": 0.1,  # Science
    "552": 0.1,  # Style & Fashion
    "653": 0.1,  # Travel
    "150": -0.25,  # Attractions
    "123": -0.25,  # Careers
    "80DV8O": -0.25,  # Communication
    "8VZQHL": -0.25,  # Events
    "SPSHQ5": -0.25,  # Genres
    "1KXCLD": -0.25,  # Holidays
    "163": -0.25,  # Personal Celebrations & Life Events
    "432": -0.25,  # Pop Culture
    "v9i3On": -0.25,  # Sensitive Topics
}


class SeedPhrases(msgspec.Struct, frozen=True):
    """The phrases of each root, of each node directly below one, and of notices that pages have in place of a text."""

    of_roots: Mapping[str, tuple[str, ...]]
    of_nodes: Mapping[str, tuple[str, ...]]
    of_notices: Mapping[str, tuple[str, ...]]

    def list_all(self) -> list[str]:
        """List every phrase once, always in the same order."""
        groups = (*self.of_roots.values(), *self.of_nodes.values(), *self.of_notices.values())
        return list(dict.fromkeys(phrase for phrases in groups for phrase in phrases))

    def digest(self) -> str:
        tables = (self.of_roots, self.of_nodes, self.of_notices)
        text = msgspec.json.encode([sorted(table.items()) for table in tables])
        return blake2b(text, digest_size=6).hexdigest()


@cache
def load_phrases() -> SeedPhrases:
    """Read the tables of the package; roots are named there, and have ids here."""
    roots = {node.name: node.id for node in load_content() if node.parent_id is None}
    return SeedPhrases(
        of_roots={roots[name]: phrases for name, phrases in _read(ROOT_PHRASES)},
        of_nodes={node_id: phrases for node_id, phrases in _read(NODE_PHRASES) if node_id in load_content()},
        of_notices=dict(_read(NOTICE_PHRASES)),
    )


def _read(name: str) -> list[tuple[str, tuple[str, ...]]]:
    """Read rows of key, a text that is not used here, and phrases."""
    text = resources.files("adloom.pages.classify").joinpath("data", name).read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [
        (key, tuple(phrase.strip() for phrase in phrases.split(";") if phrase.strip()))
        for key, _, phrases in rows
    ]
