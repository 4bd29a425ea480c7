"""Notices of the market: which shortlists were written, which banners wait for a decision."""

from typing import Final

import msgspec

from adloom.market.shortlist.model import BannersSeen, ShortlistsChanged


def name_channel(topic: str) -> str:
    return f"adloom:market:{topic}"


SHORTLIST_NOTICES: Final = name_channel("shortlists")
APPROVAL_NOTICES: Final = name_channel("approvals")

read_shortlist_notice: Final = msgspec.json.Decoder(ShortlistsChanged).decode
read_approval_notice: Final = msgspec.json.Decoder(BannersSeen).decode
