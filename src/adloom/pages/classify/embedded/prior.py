"""How much more, or less, often pages are about a root than the phrases alone would say.

Added to a root's logit, in which a similarity of 0.1 counts 1.5. The roots that most news is about gain, those that
few pages are about as their main subject lose.
"""

# pure

from collections.abc import Mapping
from typing import Final

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
