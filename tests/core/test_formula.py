"""No text of a sheet is a formula."""

from hypothesis import given
from hypothesis import strategies as st

from adloom.core.formula import FORMULA_SIGNS, QUOTE, quote_formula


@given(st.one_of(st.text(), st.builds(str.__add__, st.sampled_from(FORMULA_SIGNS), st.text())))
def test_a_text_is_no_formula_and_can_be_read_back(text: str) -> None:
    written = quote_formula(text)

    assert not written.startswith(tuple(sign for sign in FORMULA_SIGNS if sign != QUOTE))
    assert written.removeprefix(QUOTE) == text
