"""How API keys and other random secrets are recognised; light, because delivery does it too."""

# pure

import hashlib
from typing import Final

API_KEY_PREFIX: Final = "adk_"


def hash_secret(secret: str) -> bytes:
    """Hash a random secret for storage; it has 256 bits, so a fast hash without salt is enough."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
