"""The charset of a page: by its byte order mark, its HTTP header, its `meta` element; else UTF-8, else Windows-1252."""

# pure

import codecs
import re
from typing import Final

DECLARATION_BYTES_READ: Final = 1_024
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
# What browsers read as its superset; and codecs of Python that are no charsets.
_READ_AS: Final = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "utf-16": "utf-8",
}
_NOT_TEXT: Final = frozenset(
    {"base64", "bz2", "hex", "quopri", "rot-13", "uu", "zlib", "idna", "punycode", "undefined"}
)


def decode_html(body: bytes, charset: str | None = None) -> str:
    """Decode a page by the charset that its server or itself names; bytes that fit none are replaced."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    declared = _DECLARED.search(body[:DECLARATION_BYTES_READ])
    for name in (charset, declared[1].decode("ascii", "replace") if declared else None):
        known = _find_codec(name)
        if known is not None:
            return body.decode(known, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def _find_codec(name: str | None) -> str | None:
    """Return Python's name of a charset; one in which `<html>` is written in ASCII, or none."""
    if not name:
        return None
    try:
        codec = codecs.lookup(name.strip().strip("\"'"))
    except (LookupError, ValueError):
        return None
    if codec.name in _NOT_TEXT or codec.name.startswith(("utf-7", "unicode", "raw-unicode", "mbcs", "oem")):
        return None
    return _READ_AS.get(codec.name, codec.name)
