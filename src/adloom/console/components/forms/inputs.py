"""Fields that NiceGUI does not have: long selects, several texts, whole numbers, and amounts of money.

Amounts have the decimals of the currency, none rounded away unseen. They and whole numbers are fields for text: a browser
drops a comma from a field for numbers, so that 12,50 would become 1250, and takes what it cannot read, such as 10-, for
nothing, which is no limit.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from nicegui import ui
from nicegui.events import GenericEventArguments

from adloom.console.components.format import get_shown_currency
from adloom.console.components.forms import checks
from adloom.core.currency import PRICE_PLACES_MAX, Currency
from adloom.resource.shapes import PAISA_MAX, PRICE_MAX


class LongSelect(ui.select):
    """A select of many choices, filled once, and again only when they change: NiceGUI's own copies all for each property."""

    def _update_options(self) -> None:
        # A time zone has 490 choices, and a field of a form gets a dozen properties: 64 ms of the server, now 7.
        filled: tuple[list[Any], list[Any]] = (list(self._values), list(self._labels))
        if filled != getattr(self, "_filled", None):
            self._filled = filled
            super()._update_options()


class TextsSelect(ui.select):
    """A field for several texts, each of which becomes a chip.

    Enter adds what was typed, and so does leaving the field: Quasar itself would drop it without a word.
    """

    def __init__(self, label: str, value: Sequence[str]) -> None:
        super().__init__(
            sorted(value),
            label=label,
            value=list(value),
            multiple=True,
            with_input=True,
            new_value_mode="add-unique",
        )
        self.props("use-chips hide-dropdown-icon")
        self._typed = ""
        self.on("input-value", lambda event: self._keep(event.args))
        self.on_value_change(lambda: self._keep(""))
        self.on("blur", self.add_typed, args=[])

    def _keep(self, typed: str) -> None:
        self._typed = typed.strip()

    def add_typed(self) -> None:
        """Add what was typed; also before it is saved, because a tap on a button may come before the field is left."""
        typed, self._typed = self._typed, ""
        if typed and typed not in self.value:
            value: list[str] = [*self.value, typed]
            self.set_options(sorted(value), value=value)


PAISA_PLACES: Final = 2  # The API keeps budgets in hundredths of a unit, in every currency.
MONEY_MAX: Final = PAISA_MAX // 10**PAISA_PLACES
NO_AMOUNT: Final = "must be a number such as 1250.50, without signs between thousands"
AMOUNT: Final = re.compile(r"-?(?=[.,]?\d)\d{0,30}(?:[.,]\d{0,10})?", re.ASCII)
INTEGER: Final = re.compile(r"-?\d{1,30}", re.ASCII)
THOUSANDS: Final = re.compile(r"[1-9]\d{0,2}(?:(?:,\d{3}){1,9}|(?:\.\d{3}){1,9})", re.ASCII)
THOUSAND_DIGITS: Final = 3
# It may be a thousand or a fraction.
TWO_WAYS: Final = re.compile(r"-?0*[1-9]\d*[.,]\d{3}")


class IntegerField(ui.number):
    """A whole number; what is none stays as text, for the check to refuse."""

    def __init__(self, label: str, value: int | None) -> None:
        super().__init__(label, value=value)
        self.props('type="text" inputmode="numeric" autocomplete="off"')

    def sanitize(self) -> None:
        """Show the value again; a wrong one stays, and its error says what to change."""
        if self.value is not None:
            self.update()

    def _event_args_to_value(self, e: GenericEventArguments) -> Any:  # noqa: ANN401 - NiceGUI's own
        return read_integer(str(e.args or ""))

    def _value_to_model_value(self, value: Any) -> Any:  # noqa: ANN401 - NiceGUI's own
        return None if value is None else str(value)


def read_integer(text: str) -> int | str | None:
    """Read a whole number; signs between thousands are left out, as there is no fraction that they could begin."""
    bare = "".join(text.split())
    if not bare:
        return None
    if THOUSANDS.fullmatch(bare) is not None:
        bare = bare.replace(",", "").replace(".", "")
    return int(bare) if INTEGER.fullmatch(bare) is not None else text


class AmountField(ui.number):
    """A number with the decimals of the currency; more are shown as they were typed, for the check to refuse.

    What is no number stays as text, for the check to refuse too.
    """

    def __init__(self, label: str, value: float | None, *, currency: Currency, decimals_max: int) -> None:
        self._places = currency.places
        self._decimals_max = decimals_max
        super().__init__(label, value=value, prefix=currency.symbol or None)
        self.props('type="text" inputmode="decimal" autocomplete="off"')

    def sanitize(self) -> None:
        """Show the value again with its decimals; a wrong one stays, and its error says what to change."""
        if self.value is not None:
            self.update()

    def _event_args_to_value(self, e: GenericEventArguments) -> Any:  # noqa: ANN401 - NiceGUI's own
        return read_amount(str(e.args or ""), self._decimals_max)

    def _value_to_model_value(self, value: Any) -> Any:  # noqa: ANN401 - NiceGUI's own
        return value if value is None or isinstance(value, str) else write_amount(value, self._places)


def read_amount(text: str, decimals_max: int) -> float | str | None:
    """Read a number with a point or a comma before its decimals; what can be read in no way, or in two, stays text.

    1,250 is read in two ways always, and 1.250 where no amount has three decimals.
    """
    bare = "".join(text.split())
    if not bare:
        return None
    if AMOUNT.fullmatch(bare) is None:
        return text
    if TWO_WAYS.fullmatch(bare) is not None and ("," in bare or decimals_max < THOUSAND_DIGITS):
        return text
    return float(bare.replace(",", "."))


def write_amount(value: float, places: int) -> str:
    """Write an amount with at least so many decimals, and with all that it has."""
    rounded = f"{value:.{places}f}"
    return rounded if float(rounded) == value else f"{value:.10f}".rstrip("0")


def count_paisa(value: float | str | None) -> int | None:
    """Return an amount in the unit of the API; what is no amount is none."""
    return None if value is None or isinstance(value, str) else round(value * 100)


def add_money_field(
    label: str, paisa: float | None, *, is_positive: bool = False
) -> tuple[AmountField, checks.Check]:
    """Make a field for an amount that the API has in hundredths, and its check."""
    currency = get_shown_currency()
    value = None if paisa is None else paisa / 100
    field = AmountField(label, value, currency=currency, decimals_max=currency.places)
    return field, make_money_check(currency, is_positive=is_positive)


def add_price_field(label: str, value: float | None) -> AmountField:
    """Make a field for a price: it may have more decimals than the currency, as a click may cost half a cent."""
    return AmountField(label, value, currency=get_shown_currency(), decimals_max=PRICE_PLACES_MAX)


def make_money_check(currency: Currency, *, is_positive: bool = False) -> checks.Check:
    """Return the check of amounts in hundredths."""
    places = min(currency.places, PAISA_PLACES)
    said = f"must have at most {places} decimals"
    if places == 0:
        said = f"must be a whole number: {currency.code} has no decimals"
    elif places < currency.places:
        said += f": budgets are kept in hundredths of {currency.code}"

    def check(value: float | str) -> str | None:
        if isinstance(value, str):
            return NO_AMOUNT
        if not 0 <= value <= MONEY_MAX:
            return f"must be from 0 to {MONEY_MAX:,}"
        if is_positive and not value:
            return "must be more than 0"
        return None if value == round(value, places) else said

    return check


def check_price(value: float | str) -> str | None:
    if isinstance(value, str):
        return NO_AMOUNT
    if value > PRICE_MAX:
        return f"must be at most {PRICE_MAX:,}"
    is_price = value >= 0 and value == round(value, PRICE_PLACES_MAX)
    return None if is_price else "must be a number, 0 or more, with at most 4 decimal places"
