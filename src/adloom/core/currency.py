"""Currencies: their symbols, how many decimals people write, and amounts with both."""

# pure

from typing import Final

import msgspec

PLACES_USUAL: Final = 2
# ISO 4217, where it is not two.
PLACES: Final = {
    "BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0,
    "UGX": 0, "UYI": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
    "BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
}  # fmt: skip
# Only where it names one currency: others are written by their code.
SYMBOLS: Final = {
    "AUD": "A$", "BRL": "R$", "CAD": "CA$", "CNY": "CN¥", "EUR": "€", "GBP": "£", "HKD": "HK$", "ILS": "₪",
    "INR": "₹", "JPY": "¥", "KRW": "₩", "MXN": "MX$", "NGN": "₦", "NZD": "NZ$", "PHP": "₱", "PLN": "zł",
    "TRY": "₺", "TWD": "NT$", "UAH": "₴", "USD": "$", "VND": "₫", "ZAR": "R",
}  # fmt: skip
PRICE_PLACES_MAX: Final = 4


class Currency(msgspec.Struct, frozen=True):
    """A currency as people write it; without a code amounts are plain numbers."""

    code: str = ""

    @property
    def places(self) -> int:
        return PLACES.get(self.code, PLACES_USUAL)

    @property
    def symbol(self) -> str:
        """The sign that stands before an amount; codes and words have a space after them."""
        sign = SYMBOLS.get(self.code, self.code)
        return f"{sign}\u00a0" if sign and sign[-1].isalpha() else sign

    def write_paisa(self, paisa: float) -> str:
        """Write hundredths of a unit: 123456 is €1,234.56."""
        return self._write(paisa / 100, self.places)

    def write_price(self, amount: float) -> str:
        """Write a price of a click or of a thousand impressions: with more decimals only where it has them."""
        text = f"{abs(amount):.{max(PRICE_PLACES_MAX, self.places)}f}"
        needed = len(text.rstrip("0").partition(".")[2])
        return self._write(amount, max(needed, self.places))

    def _write(self, amount: float, places: int) -> str:
        shown = f"{abs(amount):,.{places}f}"
        is_negative = amount < 0 and any(digit in "123456789" for digit in shown)
        return f"{'-' if is_negative else ''}{self.symbol}{shown}"


NO_CURRENCY: Final = Currency()
