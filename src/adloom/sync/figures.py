"""The figures of ad statistics, and the ratios computed from them."""

# pure

from decimal import ROUND_HALF_UP, Decimal
from typing import Final

import msgspec

ZERO: Final = Decimal(0)
CENT: Final = Decimal("0.01")
RATIO_PLACE: Final = Decimal("0.0001")
THOUSAND: Final = 1000


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures that can be added up."""

    spend: Decimal = ZERO
    impressions: int = 0
    link_clicks: int = 0
    content_views: int = 0
    add_to_cart: int = 0
    checkout_initiated: int = 0
    purchases: int = 0
    purchase_value: Decimal = ZERO


class Ratios(msgspec.Struct, frozen=True, kw_only=True):
    """Ratios of sums; never added up or averaged."""

    cpm: Decimal
    ctr: Decimal
    cpc: Decimal
    cost_per_purchase: Decimal
    roas: Decimal


def compute_ratios(figures: Figures) -> Ratios:
    """Compute ratios to 4 decimal places; a ratio to zero is 0."""
    return Ratios(
        cpm=compute_ratio(figures.spend * THOUSAND, figures.impressions),
        ctr=compute_ratio(figures.link_clicks, figures.impressions),
        cpc=compute_ratio(figures.spend, figures.link_clicks),
        cost_per_purchase=compute_ratio(figures.spend, figures.purchases),
        roas=compute_ratio(figures.purchase_value, figures.spend),
    )


def compute_ratio(of: Decimal | int, to: Decimal | int) -> Decimal:
    """Divide and round half up to 4 decimal places; dividing by zero gives 0."""
    if not to:
        return ZERO
    return (Decimal(of) / to).quantize(RATIO_PLACE, rounding=ROUND_HALF_UP)


def round_money(amount: Decimal) -> Decimal:
    """Round to 2 decimal places, half up."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)
