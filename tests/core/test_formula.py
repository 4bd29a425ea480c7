"""No text of a sheet is a formula."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from adloom.core.formula import FORMULA_SIGNS, QUOTE, escape_formula, quote_formula, unquote_formula

pieces = st.sampled_from([*FORMULA_SIGNS, ";", "\r\n", "a"])


@given(st.one_of(st.text(), st.lists(pieces).map("".join)))
def test_a_text_is_no_formula_wherever_a_spreadsheet_begins_a_cell_and_can_be_read_back(text: str) -> None:
    written = quote_formula(text)

    # Where numbers have commas, Excel takes a semicolon for the end of a cell, and a quoted line break for one of a row.
    signs = tuple(sign for sign in FORMULA_SIGNS if not sign.isspace() and sign != QUOTE)
    assert not any(cell.startswith(signs) for cell in re.split("[;\t\r\n]", written))
    assert unquote_formula(written) == text


@given(st.lists(st.one_of(st.text(), st.lists(pieces).map("".join))))
def test_a_list_has_no_formula_after_a_semicolon_and_stays_the_same(texts: list[str]) -> None:
    written = escape_formula(json.dumps(texts))

    assert not re.search("[;\t\r\n][=+@＝＋－＠-]", written)  # noqa: RUF001 - these are meant
    assert json.loads(written) == texts
