"""Checks of an installation, each a `Finding`: shown by `adloom doctor`, and in part under "needs attention"."""
