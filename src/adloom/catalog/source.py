"""Where a banner or a campaign comes from."""

from enum import StrEnum


class Source(StrEnum):
    """Who stands behind a banner or a campaign."""

    INTERNAL = "internal"
    SPONSORED = "sponsored"
    AFFILIATE = "affiliate"
    SYSTEM = "system"
