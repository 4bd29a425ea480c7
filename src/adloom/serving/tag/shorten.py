"""Makes the tag's own source shorter: without comments and spaces, and with short names for what only it knows.

No general minifier. It reads the JavaScript that stands in `browser/`, statements ended by semicolons,
and leaves alone whatever it is not sure of: a name is shortened only where none of its uses could be
the name of a property.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<word>[A-Za-z_$][\w$]*)
    |(?P<number>\d[\w.]*)
    |(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<template>`(?:\\.|[^`\\])*?(?:\$\{|`))
    |(?P<sign>=>|\+\+|--|\.\.\.|\?\?|\?\.(?!\d)|===|!==|>>>|\*\*|&&|\|\||[-+*%&|^<>=!]=?|>>|[{}()\[\];,.?:~/])""",
    re.VERBOSE | re.DOTALL,
)
_REGEX: Final = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n\[])+/[a-z]*")
_TEMPLATE_REST: Final = re.compile(r"\}(?:\\.|[^`\\])*?(?:\$\{|`)", re.DOTALL)
_VALUE_BEFORE: Final = re.compile(r"[\w$)\]`\"'}]$")
_DECLARED: Final = frozenset({"const", "let", "function"})
_RESERVED: Final = frozenset({"as", "do", "if", "in", "of"})
_BLOCK: Final = "a block, where a name is no property"
_BEFORE_BLOCK: Final = frozenset(["", ")", "=>", "else", "try", "catch", "finally", ";", "{", "}"])
_BEFORE_CONDITION: Final = frozenset(["if", "for", "while"])
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
# The commonest first: what is there already is what compresses best.
_LETTERS: Final = "etaonisrlcdhmpufgbvwykxqjzETAONISRLCDHMPUFGBVWYKXQJZ"
_ENDS_NOTHING: Final = tuple("{([,;:?=>&|+")
_BEGINS_NOTHING: Final = tuple("})],.?:")


class Token(msgspec.Struct):
    """A piece of source, the bracket that it stands in, and whether a line ended before it."""

    text: str
    kind: str
    within: str
    is_on_new_line: bool


def shortened(source: str, *, kept: frozenset[str] = frozenset()) -> str:
    """Write the same program with fewer characters; `kept` are names that others know."""
    tokens, names = _without_numbers(_without_what_may_go(list(_tokens(source))))
    names |= _short_names(tokens, kept | names.keys())
    written: list[str] = []
    last = ""
    for token in tokens:
        text = names.get(token.text, token.text) if token.kind == "word" else token.text
        written.append(_gap(last, token, text) + text)
        last = text
    return "".join(written)


def _tokens(source: str) -> Iterator[Token]:
    place, before, brackets, is_on_new_line = 0, "", [""], False
    while place < len(source):
        pattern = _TOKEN
        if source[place] == "/" and source[place + 1] not in "/*" and not _VALUE_BEFORE.search(before):
            pattern = _REGEX
        elif source[place] == "}" and brackets[-1] == "${":
            pattern = _TEMPLATE_REST
        found = pattern.match(source, place)
        assert found is not None, f"cannot be read: {source[place : place + 40]!r}"
        place, text, kind = found.end(), found.group(), found.lastgroup or "literal"
        if kind == "space":
            is_on_new_line = is_on_new_line or "\n" in text
            continue
        if text[0] in "})]" or pattern is _TEMPLATE_REST:
            brackets.pop()
        yield Token(text, kind, brackets[-1], is_on_new_line)
        if text.endswith("${"):
            brackets.append("${")
        elif text in {"{", "(", "["}:
            brackets.append(_BLOCK if text == "{" and before in _BEFORE_BLOCK else text)
        before, is_on_new_line = text, False


def _without_what_may_go(tokens: list[Token]) -> list[Token]:
    """Leave out commas and semicolons before a closing bracket, and brackets around an only parameter."""
    texts = [*(token.text for token in tokens), "", "", ""]
    left: list[Token] = []
    for place, token in enumerate(tokens):
        is_last = (token.text == "," and texts[place + 1] in _CLOSING) or (
            token.text == ";" and texts[place + 1] == "}"
        )
        is_around = (token.text == "(" and texts[place + 2 : place + 4] == [")", "=>"]) or (
            token.text == ")" and texts[place + 1] == "=>" and place > 1 and texts[place - 2] == "("
        )
        if not (is_last or (is_around and texts[place + (1 if token.text == "(" else -1)].isidentifier())):
            left.append(token)
    return left


def _without_numbers(tokens: list[Token]) -> tuple[list[Token], dict[str, str]]:
    """Leave out constants that are plain numbers; their names stand for what they are."""
    left: list[Token] = []
    numbers: dict[str, str] = {}
    place = 0
    while place < len(tokens):
        first, name, equals, number, end = (*(one.text for one in tokens[place : place + 5]), *[""] * 5)[:5]
        if first == "const" and name.isupper() and equals == "=" and number.isdigit() and end == ";":
            numbers[name] = number
            place += 5
        else:
            left.append(tokens[place])
            place += 1
    return left, numbers


def _short_names(tokens: list[Token], kept: frozenset[str]) -> dict[str, str]:
    """Give the names that may change, the most frequent first, the shortest that nobody has."""
    counts = Counter(token.text for token in tokens if token.kind == "word")
    mine = _declared(tokens) - _maybe_properties(tokens) - kept
    long = sorted((name for name in mine if len(name) > 1), key=lambda name: (-counts[name], name))
    free = (name for name in _all_names() if name not in counts and name not in _RESERVED)
    return dict(zip(long, free, strict=False))


def _declared(tokens: list[Token]) -> set[str]:
    """Find what the source itself names: after `const`, `let` and `function`, and as a parameter."""
    names: set[str] = set()
    for place, token in enumerate(tokens):
        before = tokens[place - 1].text if place else ""
        after = tokens[place + 1].text if place + 1 < len(tokens) else ""
        if token.kind == "word" and (before in _DECLARED or after == "=>"):
            names.add(token.text)
        elif (token.text == "[" and before in _DECLARED) or (
            token.text == "(" and _opens_parameters(tokens, place)
        ):
            names |= _listed(tokens, place)
    return names


def _opens_parameters(tokens: list[Token], place: int) -> bool:
    behind = _end(tokens, place) + 1
    if behind < len(tokens) and tokens[behind].text == "=>":
        return True
    if place > 1 and tokens[place - 2].text == "function":
        return True
    is_method = tokens[place - 1].kind == "word" and tokens[place - 1].text not in _BEFORE_CONDITION
    return is_method and behind < len(tokens) and tokens[behind].text == "{"


def _listed(tokens: list[Token], place: int) -> set[str]:
    """Give the names between two brackets that stand alone, with commas around them."""
    return {
        tokens[at].text
        for at in range(place + 1, _end(tokens, place))
        if tokens[at].kind == "word"
        and tokens[at - 1].text in {"(", "[", ",", "..."}
        and tokens[at + 1].text in {")", "]", ","}
    }


def _end(tokens: list[Token], place: int) -> int:
    """Find the bracket that closes one."""
    depth = 0
    for at in range(place, len(tokens)):
        if tokens[at].kind == "sign":
            depth += (tokens[at].text in _OPENING) - (tokens[at].text in _CLOSING)
        if not depth:
            return at
    raise AssertionError("a bracket is not closed")


def _maybe_properties(tokens: list[Token]) -> set[str]:
    """Find the names that are those of properties somewhere, by a dot or within the braces of an object."""
    names: set[str] = set()
    for place, token in enumerate(tokens[:-1]):
        before, after = tokens[place - 1].text if place else "", tokens[place + 1].text
        is_member = token.within == "{" and before in {"{", ","} and after in {",", "}", ":", "(", "="}
        if token.kind == "word" and (is_member or before in {".", "?."}):
            names.add(token.text)
    return names


def _all_names() -> Iterator[str]:
    yield from _LETTERS
    for first in _LETTERS:
        for second in _LETTERS:
            yield first + second


def _gap(last: str, token: Token, text: str) -> str:
    if not last:
        return ""
    if token.is_on_new_line and not last.endswith(_ENDS_NOTHING) and not text.startswith(_BEGINS_NOTHING):
        return "\n"
    is_word = (last[-1].isalnum() or last[-1] in "_$") and (text[0].isalnum() or text[0] in "_$")
    return " " if is_word or (last[-1] == text[0] and text[0] in "+-") else ""
