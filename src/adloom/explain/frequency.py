"""Which banners a visitor has seen as often as their frequency caps allow."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from adloom.events.frequency.counts import FrequencyCounters
from adloom.events.frequency.windows import Window
from adloom.runtime.valkey import Valkey
from adloom.serving.index.rows import AssignmentRow


async def find_seen_enough(
    valkey: Valkey, rows: Iterable[AssignmentRow], user_id: UUID, now: datetime
) -> frozenset[int]:
    """Return their keys; UnavailableError where it is not known."""
    capped = {str(row.banner_id): row for row in rows if row.frequency}
    if not capped:
        return frozenset()
    found = await FrequencyCounters(valkey).read([(str(user_id),)], dict.fromkeys(Window, 1), now)
    return frozenset(
        row.banner_key
        for window, banner, times in found.get(0, ())
        if (row := capped.get(banner)) is not None
        and any(cap.window is window and times >= cap.impressions_max for cap in row.frequency)
    )
