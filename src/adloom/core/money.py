"""Money is an integer of micros: 1 currency unit is 1,000,000 of them.

The API speaks of hundredths (`…Paisa`) and of decimals with at most 4 places; both are
converted here, and every rounding is named.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final, NewType

Micros = NewType("Micros", int)

MICROS_PER_UNIT: Final = 1_000_000
MICROS_PER_PAISA: Final = 10_000
IMPRESSIONS_PER_CPM: Final = 1_000
DECIMAL_PLACES: Final = Decimal("0.0001")


def micros_from_paisa(paisa: int) -> Micros:
    """Convert hundredths of a unit; exact."""
    return Micros(paisa * MICROS_PER_PAISA)


def paisa_from_micros(micros: Micros) -> int:
    """Convert to hundredths, rounded down: what is shown as spent was spent in full."""
    return micros // MICROS_PER_PAISA


def split_paisa(amounts: Sequence[Micros]) -> list[int]:
    """Convert amounts to hundredths that add up to their sum, rounded down; those with the largest rest are rounded up."""
    parts = [paisa_from_micros(amount) for amount in amounts]
    missing = paisa_from_micros(Micros(sum(amounts))) - sum(parts)
    by_rest = sorted(range(len(amounts)), key=lambda place: -(amounts[place] % MICROS_PER_PAISA))
    for place in by_rest[:missing]:
        parts[place] += 1
    return parts


def micros_from_decimal(amount: Decimal) -> Micros:
    """Convert an amount of the API; it has at most 4 places, so nothing is lost."""
    micros = amount * MICROS_PER_UNIT
    assert micros == micros.to_integral_value(), "amounts have at most 4 places"
    return Micros(int(micros))


def decimal_from_micros(micros: Micros) -> Decimal:
    """Convert to an amount of the API, half to even on the fourth place."""
    return (Decimal(micros) / MICROS_PER_UNIT).quantize(DECIMAL_PLACES, rounding=ROUND_HALF_EVEN)


def price_impression(cpm: Micros) -> Micros:
    """Price one impression at a price per thousand, rounded up: fractions are never given away."""
    return -(-cpm // IMPRESSIONS_PER_CPM)  # pyright: ignore[reportReturnType]  every offer is priced: a call would cost
