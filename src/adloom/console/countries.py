"""Names of countries (ISO 3166-1 alpha-2) and of the languages that browsers send most (ISO 639), by code."""

from typing import Final

from adloom.console.theme import asset


def _read_names(file: str) -> dict[str, str]:
    pairs = (line.split(" ", 1) for line in asset(file).decode().splitlines())
    return dict(sorted(((code, name) for code, name in pairs), key=lambda pair: pair[1]))


COUNTRIES: Final = _read_names("countries.txt")
LANGUAGES: Final = _read_names("languages.txt")
