"""How many of the impressions on placements were of readers that a campaign's rules want. Pure.

Of what was seen the country, the device and the hour are counted; rules about anything else are taken to hold.
"""

# pure

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from adloom.explain.campaign.traffic import Seen
from adloom.schedule.schedule import find_zone
from adloom.targeting.context import Context
from adloom.targeting.evaluate import matches_all
from adloom.targeting.rules import Rule, RuleType

COUNTED: Final = frozenset({RuleType.COUNTRY, RuleType.DEVICE, RuleType.HOUR_OF_DAY, RuleType.DAY_OF_WEEK})


def wanted_impressions(rules: Sequence[Rule], seen: Sequence[Seen], zones: Mapping[int, str]) -> int:
    """Count those that all rules hold for that can be judged by what is counted."""
    judged = [rule for rule in rules if rule.rule_type in COUNTED]
    return sum(
        one.impressions
        for one in seen
        if matches_all(judged, _context(one, zones.get(one.placement_key, "UTC")))
    )


def _context(seen: Seen, zone: str) -> Context:
    local = _local(seen.hour, zone)
    return Context(
        device=seen.device,
        country=seen.country,
        language=None,
        is_logged_in=False,
        is_new_visitor=False,
        referrer_domain=None,
        segment=None,
        hour=local.hour,
        day=local.isoweekday() % 7,
    )


def _local(hour: datetime, zone: str) -> datetime:
    return hour.astimezone(find_zone(zone) or UTC)
