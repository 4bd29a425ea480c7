"""The figures of statistics, and the ratios that follow from them; pure."""

# pure

from decimal import ROUND_HALF_UP, Decimal
from typing import Final

import msgspec

ZERO: Final = Decimal(0)
CENT: Final = Decimal("0.01")
RATIO_PLACE: Final = Decimal("0.0001")
THOUSAND: Final = 1000


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What can be added up."""

    spend: Decimal = ZERO
    impressions: int = 0
    link_clicks: int = 0
    content_views: int = 0
    add_to_cart: int = 0
    checkout_initiated: int = 0
    purchases: int = 0
    purchase_value: Decimal = ZERO


class Ratios(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from sums, and is never added up or averaged."""

    cpm: Decimal
    ctr: Decimal
    cpc: Decimal
    cost_per_purchase: Decimal
    roas: Decimal


def compute_ratios(figures: Figures) -> Ratios:
    """Derive the ratios of some figures, to 4 places; of nothing they are 0."""
    return Ratios(
        cpm=compute_ratio(figures.spend * THOUSAND, figures.impressions),
        ctr=compute_ratio(figures.link_clicks, figures.impressions),
        cpc=compute_ratio(figures.spend, figures.link_clicks),
        cost_per_purchase=compute_ratio(figures.spend, figures.purchases),
        roas=compute_ratio(figures.purchase_value, figures.spend),
    )


def compute_ratio(of: Decimal | int, to: Decimal | int) -> Decimal:
    """Divide, half up on the fourth place; by nothing gives 0."""
    if not to:
        return ZERO
    return (Decimal(of) / to).quantize(RATIO_PLACE, rounding=ROUND_HALF_UP)


def round_money(amount: Decimal) -> Decimal:
    """Round an amount to hundredths, half up."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)
