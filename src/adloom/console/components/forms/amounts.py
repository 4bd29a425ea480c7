"""Fields for amounts of money: as many decimals as the currency has, and none that is rounded away unseen."""

from typing import Any, Final

from nicegui import ui

from adloom.console.components.format import get_shown_currency
from adloom.console.components.forms import checks
from adloom.core.currency import PRICE_PLACES_MAX, Currency

PAISA_PLACES: Final = 2  # The API keeps budgets in hundredths of a unit, in every currency.


class AmountField(ui.number):
    """A number with the decimals of the currency; more are shown as they were typed, for the check to refuse."""

    def __init__(self, label: str, value: float | None, *, currency: Currency, step: float) -> None:
        self._places = currency.places
        super().__init__(
            label,
            value=value,
            min=0,
            step=step,
            format=f"%.{currency.places}f",
            prefix=currency.symbol or None,
        )

    def sanitize(self) -> None:
        """Show the value again with its decimals; a wrong one stays, and its error says what to change."""
        if self.value is not None:
            self.update()

    def _value_to_model_value(self, value: Any) -> Any:  # noqa: ANN401 - NiceGUI's own
        return None if value is None or value == "" else write_amount(float(value), self._places)


def write_amount(value: float, places: int) -> str:
    """Write an amount with at least so many decimals, and with all that it has."""
    rounded = f"{value:.{places}f}"
    return rounded if float(rounded) == value else f"{value:.10f}".rstrip("0")


def add_money_field(label: str, paisa: float | None) -> tuple[AmountField, checks.Check]:
    """Make a field for an amount that the API has in hundredths, and its check."""
    currency = get_shown_currency()
    places = min(currency.places, PAISA_PLACES)
    value = None if paisa is None else paisa / 100
    return AmountField(label, value, currency=currency, step=10**-places), make_money_check(currency)


def add_price_field(label: str, value: float | None) -> AmountField:
    """Make a field for a price: it may have more decimals than the currency, as a click may cost half a cent."""
    currency = get_shown_currency()
    return AmountField(label, value, currency=currency, step=10 ** -min(currency.places, PRICE_PLACES_MAX))


def make_money_check(currency: Currency) -> checks.Check:
    """Return the check of amounts in hundredths."""
    places = min(currency.places, PAISA_PLACES)
    said = f"must have at most {places} decimals"
    if places == 0:
        said = f"must be a whole number: {currency.code} has no decimals"
    elif places < currency.places:
        said += f": budgets are kept in hundredths of {currency.code}"

    def check(value: float) -> str | None:
        if value < 0:
            return "must be 0 or more"
        return None if value == round(value, places) else said

    return check
