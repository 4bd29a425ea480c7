"""Who pays in the sample: advertisers and their brands."""

from typing import Final

import msgspec

MEADOW: Final = "meadow"
KETTLE: Final = "kettle"
LUMEN: Final = "lumen"
FERNWAY: Final = "fernway"
PAPER_MOON: Final = "paper-moon"


class Advertiser(msgspec.Struct, frozen=True, kw_only=True):
    """Who pays, and how much on a day at most."""

    key: str
    name: str
    daily_budget_paisa: int | None
    timezone: str = "Europe/London"


class Brand(msgspec.Struct, frozen=True):
    """A record of the shop that banners name."""

    key: str
    label: str


ADVERTISERS: Final = (
    Advertiser(key=MEADOW, name="Meadow & Oak", daily_budget_paisa=40_000),
    # So little that it is used up before the day is.
    Advertiser(key=KETTLE, name="Kettle & Leaf", daily_budget_paisa=600),
    Advertiser(key=LUMEN, name="Lumen Lamps", daily_budget_paisa=15_000, timezone="Europe/Berlin"),
    Advertiser(key=FERNWAY, name="Fernway Walking Tours", daily_budget_paisa=None),
    Advertiser(key=PAPER_MOON, name="Paper Moon Books", daily_budget_paisa=9_000),
)
OWN: Final = "own"
TEAS: Final = "teas"
LAMPS: Final = "lamps"
BRANDS: Final = (Brand(OWN, "Meadow & Oak"), Brand(TEAS, "Kettle & Leaf"), Brand(LAMPS, "Lumen"))
