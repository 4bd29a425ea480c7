"""Which conversions are new, and whether a conversion counts: by the click of its offer, whichever came first.

A conversion is judged again whenever a click of its offer comes or becomes valid. A click never becomes invalid, so a
name that has counted stays counted.

Of several conversions of a name one counts: one that came with the advertiser's key before one without, then the first
in the log. Names can be guessed, and everybody who is shown an ad can report. So one that does not count claims nothing,
and a name that a stranger was faster with is the advertiser's again. Which one counts depends on all that came, and not
on the order of clicks or on how the log was cut into batches.
"""

# pure

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

import msgspec

from adloom.core.money import Micros
from adloom.events.log.event import Conversion
from adloom.events.ports import EntryOf

# Further ones of an offer are not kept: whoever has a token could report a million. Those with a key count apart.
CONVERSIONS_PER_OFFER_MAX: Final = 20

Offer: TypeAlias = tuple[int, int]  # The number of the request's id, and the slot.
ConversionName: TypeAlias = tuple[int, bytes]  # The key of the campaign, and the conversion's name.
# And its offer, and whether it came with a key: what an offer's visitor reports claims nothing of what the shop does.
ConversionKey: TypeAlias = tuple[int, bytes, Offer, bool]
# Of several conversions of a name the lowest counts: with a key, and first in the log.
Precedence: TypeAlias = tuple[bool, int, int]


class ConversionMark(StrEnum):
    """Why a conversion, or its value, does not count."""

    NO_CLICK = "no_click"
    INVALID_CLICK = "invalid_click"
    CLICK_TOO_OLD = "click_too_old"
    OTHER_CURRENCY = "other_currency"  # The conversion counts, and its value does not.
    REPEATED = "repeated"  # Another one of this name counts.


class AttributionRules(msgspec.Struct, frozen=True, kw_only=True):
    """How old a click may be, and the currency that values are added up in; None adds all."""

    click_age_max: timedelta = timedelta(days=30)
    currency: str | None = None


def build_rules(days: int, currency: str | None) -> AttributionRules:
    """Return the rules as the settings name them."""
    return AttributionRules(click_age_max=timedelta(days=days), currency=currency)


class CatalogKeys(msgspec.Struct, frozen=True):
    """Keys of the catalog by the numbers of ids."""

    banners: Mapping[int, int]
    placements: Mapping[int, int]
    campaigns: Mapping[int, int]


class NewConversion(NamedTuple):
    """A conversion that is not in the tables yet, with the keys of its banner, placement and campaign."""

    entry_id: str
    event: Conversion
    banner_id: int
    placement_id: int
    campaign_id: int


class NewConversions(NamedTuple):
    """The conversions of a batch to keep, and how many are repeated, or dropped."""

    kept: list[NewConversion]
    repeated: int
    dropped: int


class ClickOfOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A click as its row says now."""

    occurred_at: datetime
    is_valid: bool
    country_code: str | None = None
    device_type: str | None = None


class Attribution(NamedTuple):
    """The click that a conversion counts for, if it does; what it is worth; and the marks of its row."""

    click: ClickOfOffer | None
    value: Micros
    marks: tuple[ConversionMark, ...] = ()


def select_new(
    entries: Sequence[EntryOf[Conversion]],
    keys: CatalogKeys,
    *,
    known: Set[ConversionKey],
) -> NewConversions:
    """Keep conversions with a place in the catalog, and a name that is new to their offer; some of each offer."""
    kept: list[NewConversion] = []
    taken = set(known)
    of_offers = Counter((offer, by_key) for _, _, offer, by_key in known)
    repeated = dropped = 0
    for entry in entries:
        event = entry.event
        banner_id = keys.banners.get(event.banner_id.int)
        placement_id = keys.placements.get(event.placement_id.int)
        campaign_id = keys.campaigns.get(event.campaign_id.int)
        offer = event.request_id.int, event.slot
        if banner_id is None or placement_id is None or campaign_id is None:
            dropped += 1
        elif (key := (campaign_id, event.name, offer, event.by_key)) in taken:
            repeated += 1
        elif of_offers[offer, event.by_key] >= CONVERSIONS_PER_OFFER_MAX:
            dropped += 1
        else:
            taken.add(key)
            of_offers[offer, event.by_key] += 1
            kept.append(NewConversion(entry.entry_id, event, banner_id, placement_id, campaign_id))
    return NewConversions(kept, repeated, dropped)


def judge(
    occurred_at: datetime,
    value: Micros,
    currency: str | None,
    clicks: Sequence[ClickOfOffer],
    rules: AttributionRules,
) -> Attribution:
    """Attribute a conversion to the last valid click of its offer, or say why to none."""
    if not clicks:
        return Attribution(None, Micros(0), (ConversionMark.NO_CLICK,))
    valid = [click for click in clicks if click.is_valid]
    if not valid:
        return Attribution(None, Micros(0), (ConversionMark.INVALID_CLICK,))
    last = max(valid, key=lambda click: click.occurred_at)
    if occurred_at - last.occurred_at > rules.click_age_max:
        return Attribution(None, Micros(0), (ConversionMark.CLICK_TOO_OLD,))
    if currency is not None and rules.currency is not None and currency != rules.currency:
        return Attribution(last, Micros(0), (ConversionMark.OTHER_CURRENCY,))
    return Attribution(last, value)


def choose_counted(
    waiting: Sequence[tuple[ConversionName, Precedence]],
    counted: Mapping[ConversionName, Precedence],
) -> set[tuple[ConversionName, Precedence]]:
    """Return those that count from now on, of conversions that may; each that counts so far may have to give way."""
    best = dict(counted)
    for name, precedence in waiting:
        best[name] = min(precedence, best.get(name, precedence))
    return {(name, precedence) for name, precedence in best.items() if counted.get(name) != precedence}
