"""Vocabulary without I/O: time, money, identifiers, chance, errors, callers."""
