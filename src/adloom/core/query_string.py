"""The query of a web address."""

from collections.abc import Mapping
from urllib.parse import quote, urlsplit, urlunsplit


def add_parameters(address: str, parameters: Mapping[str, str | None]) -> str:
    """Append parameters to an address; its own query and fragment stay as they were written."""
    added = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items() if value)
    if not added:
        return address
    parts = urlsplit(address)
    query = f"{parts.query}&{added}" if parts.query else added
    return urlunsplit(parts._replace(query=query))
