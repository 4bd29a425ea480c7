"""Settings of uploaded files."""

from typing import Annotated, Final

import msgspec

from adloom.core.setting import Variable, parse_within
from adloom.runtime.files.place import choose_default_files_url, parse_files_url

ASSETS_URL: Final = Variable("ADLOOM_ASSETS_URL", parse_files_url, choose_default_files_url)
_FILE_BYTES: Final = parse_within(1, 64 * 2**20)


class AssetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How large uploaded files may be, how much an account may have, and how long unused ones are kept."""

    image_bytes_max: Annotated[int, Variable("ADLOOM_ASSET_IMAGE_BYTES_MAX", _FILE_BYTES)] = 10 * 2**20
    video_bytes_max: Annotated[int, Variable("ADLOOM_ASSET_VIDEO_BYTES_MAX", _FILE_BYTES)] = 50 * 2**20
    html_bytes_max: Annotated[int, Variable("ADLOOM_ASSET_HTML_BYTES_MAX", _FILE_BYTES)] = 10 * 2**20
    account_bytes_max: Annotated[int, Variable("ADLOOM_ACCOUNT_ASSET_BYTES_MAX", parse_within(0, 2**40))] = (
        2**30
    )
    unused_days: Annotated[int, Variable("ADLOOM_ASSET_UNUSED_DAYS", parse_within(1, 3_650))] = 30
