"""Spend updates as server-sent events."""

from datetime import date
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.messages import SpendUpdate
from adloom.core.money import paisa_from_micros

# When a client should reconnect after its stream has ended, in milliseconds.
BEGINNING: Final = b"retry: 1000\n\n"
# From here on nothing is left out; earlier updates are unknown.
LISTENING: Final = b"event: listening\ndata: {}\n\n"
HEARTBEAT: Final = b": still here\n\n"


class SpendEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The budget state of a campaign."""

    campaign_id: UUID
    advertiser_id: UUID | None
    day: date
    spent_today_paisa: int
    spent_total_paisa: int
    held_paisa: int
    leased_paisa: int


_encode = msgspec.json.Encoder().encode


def encode_update(update: SpendUpdate) -> bytes:
    event = SpendEvent(
        campaign_id=update.campaign_id,
        advertiser_id=update.advertiser_id,
        day=update.day,
        spent_today_paisa=paisa_from_micros(update.spent_today),
        spent_total_paisa=paisa_from_micros(update.spent_total),
        held_paisa=paisa_from_micros(update.held),
        leased_paisa=paisa_from_micros(update.leased),
    )
    return b"event: spend\ndata: " + _encode(event) + b"\n\n"
