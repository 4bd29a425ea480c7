"""Texts that a spreadsheet would take for a formula, and how they are written so that it does not."""

# pure

import re
from typing import Final

QUOTE: Final = "'"
# Also as wide characters, which some spreadsheets read alike. An apostrophe of the text itself is kept by another.
_SIGNS: Final = ("=", "+", "-", "@", QUOTE, "＝", "＋", "－", "＠")  # noqa: RUF001 - these are meant
FORMULA_SIGNS: Final = (*_SIGNS, "\t", "\r", "\n")
# Where numbers have a comma, spreadsheets end a cell at a semicolon, and know no quotes that begin after a comma.
_BEGINS_A_CELL: Final = rf"(?<=[;\t\r\n]){{}}(?=[{re.escape(''.join(_SIGNS))}])"
_UNQUOTED: Final = re.compile(_BEGINS_A_CELL.format(""))
_AFTER_SEMICOLON: Final = re.compile(rf"(?<=;)[{re.escape(''.join(_SIGNS))}]")
_QUOTED: Final = re.compile(_BEGINS_A_CELL.format(QUOTE))


def quote_formula(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula, or for several cells with one."""
    quoted = _UNQUOTED.sub(QUOTE, text)
    return f"{QUOTE}{quoted}" if text.startswith(FORMULA_SIGNS) else quoted


def unquote_formula(text: str) -> str:
    return _QUOTED.sub("", text.removeprefix(QUOTE))


def escape_formula(json: str) -> str:
    """Return the same JSON, with signs after semicolons escaped: line breaks are, and a list begins with a bracket."""
    return _AFTER_SEMICOLON.sub(lambda sign: f"\\u{ord(sign[0]):04x}", json)
