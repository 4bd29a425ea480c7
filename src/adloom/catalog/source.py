"""Where a banner or a campaign comes from."""

from enum import StrEnum


class Source(StrEnum):
    """Where a banner or a campaign comes from."""

    INTERNAL = "internal"
    SPONSORED = "sponsored"
    AFFILIATE = "affiliate"
    SYSTEM = "system"
