"""When a supervisor steps in: for how long a child may be silent, and how much of the disk is kept free."""

from typing import Annotated, Final

import msgspec

from adloom.core.setting import Variable, parse_within

_SECONDS: Final = parse_within(0, 3_600)


class FreezeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of silence after which a child counts as frozen; 0 is never."""

    delivery_seconds: Annotated[int, Variable("ADLOOM_DELIVERY_FROZEN_SECONDS", _SECONDS)] = 5
    process_seconds: Annotated[int, Variable("ADLOOM_PROCESS_FROZEN_SECONDS", _SECONDS)] = 15
    # Only while they use no processor and no disk.
    server_seconds: Annotated[int, Variable("ADLOOM_SERVER_FROZEN_SECONDS", _SECONDS)] = 60


class ReserveSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept on the disk for a clean stop of PostgreSQL, in megabytes; 0 is nothing."""

    megabytes: Annotated[int, Variable("ADLOOM_DISK_RESERVE_MB", parse_within(0, 100_000))] = 64
