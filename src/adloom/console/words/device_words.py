"""What the console calls devices, which the API names by codes."""

# pure

import re
from typing import Final

DEVICE_NAMES: Final = {"mobile": "Phone", "tablet": "Tablet", "desktop": "Computer"}
_ABOUT_DEVICES: Final = "the device to be"
_CODE: Final = re.compile(rf"\b({'|'.join(DEVICE_NAMES)})\b")


def name_device(code: str) -> str:
    """Return what a device is called; other words stay as they are."""
    return DEVICE_NAMES.get(code, code)


def name_devices(sentence: str) -> str:
    """Write a sentence of the API about devices with their names; others may have such words by chance."""
    if _ABOUT_DEVICES not in sentence:
        return sentence
    return _CODE.sub(lambda found: DEVICE_NAMES[found[1]].lower(), sentence)
