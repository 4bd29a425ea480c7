"""Texts that a spreadsheet would take for a formula, and how they are written so that it does not."""

# pure

from typing import Final

QUOTE: Final = "'"
# Also as wide characters, which some spreadsheets read alike. An apostrophe of the text itself is kept by another.
FORMULA_SIGNS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", QUOTE, "＝", "＋", "－", "＠")  # noqa: RUF001 - these are meant


def quote_formula(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"{QUOTE}{text}" if text.startswith(FORMULA_SIGNS) else text
