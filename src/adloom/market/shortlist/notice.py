"""Notices of the market: which shortlists were written."""

from typing import Final

import msgspec

from adloom.market.shortlist.model import ShortlistsChanged


def name_channel(topic: str) -> str:
    return f"adloom:market:{topic}"


SHORTLIST_NOTICES: Final = name_channel("shortlists")

read_shortlist_notice: Final = msgspec.json.Decoder(ShortlistsChanged).decode
