"""A campaign's caps. An impression cap is a budget of offers: processes lease parts of it, and offers hold one each.

    cap >= counted + seen since + leased or held by all processes

The event tables say what counted, up to an entry of the log. Each counted impression of an offer that holds one ends
that hold; those of later entries are added to what the tables said, so none is missing and none counts twice.
An expired hold is released only when the tables have counted all that was in the log at its expiry: the offer may have
been seen in time. A campaign asks for such counts, because it gets no message about a count that stays the same.
"""

# pure

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from adloom.budgets.addresses import COUNTS_TOPIC
from adloom.budgets.campaign.lease import Lease
from adloom.budgets.campaign.reports import publish_spend
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.messages import (
    CampaignCounts,
    ConfigureCampaign,
    CountedImpressions,
    CountsRequest,
    LeaseUsage,
)
from adloom.core.money import Micros
from adloom.events.log.event import BEGINNING, parse_entry_id
from adloom.runtime.actors.actor import Effect, Persist, Publish

LAST_OFFERS: Final = 4

_changed = msgspec.structs.replace


def report_offers(state: CampaignState, lease: Lease, usage: LeaseUsage, second: int) -> Lease | None:
    """Apply what a process reports of its offers; None if it counts none."""
    known = state.offers.get(lease.number)
    if known is None:
        if not usage.impressions and not usage.want_impressions:
            return None
        known = Lease(
            number=lease.number,
            session=lease.session,
            window=lease.window,
            day=lease.day,
            reported=usage.report - 1,
        )
    return known.reported_given(usage.impressions, report=usage.report, second=second)


def grant_offers(offers: Lease, left: int, usage: LeaseUsage, *, sessions: int, second: int) -> Lease:
    """Grant what fits, as for money."""
    want = usage.want_impressions
    if want <= offers.unassigned:
        return offers.granted_up_to(Micros(want), second=second)
    more = size_grant(want - offers.unassigned, left, cost=1, sessions=sessions)
    return offers.granted_up_to(Micros(offers.unassigned + more), second=second)


def size_grant(want: int, left: int, *, cost: int, sessions: int) -> int:
    """At most half of a process's share of what is left, but at least one offer.

    If there is only one process, it gets the last few at once: visitors of the same moment wait for no second grant.
    """
    least = LAST_OFFERS * cost if sessions == 1 else cost
    return max(0, min(want, left, max(left // (2 * sessions), least)))


def apply_seen(state: CampaignState, message: CountedImpressions, effects: list[Effect]) -> CampaignState:
    """End the holds of offers that were seen. Entries come in their order, and may be repeated."""
    until = state.seen_until
    last = parse_entry_id(until)
    known = parse_entry_id(BEGINNING if state.counted is None else state.counted.until)
    offers, seen = dict(state.offers), list(state.seen)
    for number, second, entry_id in message.seen:
        entry = parse_entry_id(entry_id)
        if entry <= last:
            continue
        until, last = entry_id, entry
        if entry > known:
            seen.append(entry_id)
        one = offers.get(number)
        is_over = one is None or one.has_expired(second, released_until=state.offers_released_until)
        if one is not None and not is_over and one.covers(second, Micros(1)):
            offers[number] = one.charged_at(second, Micros(1))
    effects.append(Persist())
    return _changed(state, offers=offers, seen=tuple(seen), seen_until=until)


def apply_counts(
    state: CampaignState, counts: CampaignCounts, now: datetime, effects: list[Effect]
) -> CampaignState:
    """Take what the tables say, unless we know of a later state of them."""
    if state.counted is None:
        effects.append(publish_spend(state, now))  # Processes that were refused until now ask again.
    until = parse_entry_id(counts.until)
    if state.counted is not None:
        if until < parse_entry_id(state.counted.until):
            return state
        counts = _changed(counts, complete_until=max(counts.complete_until, state.counted.complete_until))
    if state.configured.click_cap is not None and state.clicked_before is None:
        later = sum(parse_entry_id(entry_id) > until for entry_id in state.clicked_entries)
        before = max(0, counts.clicks - (state.clicked - later))
        state = _changed(state, clicked_before=before, clicked_until=counts.until, clicked_entries=())
    seen = tuple(entry_id for entry_id in state.seen if parse_entry_id(entry_id) > until)
    return _changed(state, counted=counts, seen=seen)


def count_click(state: CampaignState, entry_id: str) -> tuple[CampaignState, bool]:
    """Count a click that is confirmed, and return whether it is within the click cap."""
    if state.configured.click_cap is None:
        return state, True
    before, entries = state.clicked_before, state.clicked_entries
    if before is None:
        entries = (*entries, entry_id)
    elif before and entry_id != BEGINNING and parse_entry_id(entry_id) <= parse_entry_id(state.clicked_until):
        before -= 1  # The tables have counted it already: it counts once.
    state = _changed(state, clicked_before=before)
    return _changed(state, clicked=state.clicked + 1, clicked_entries=entries), state.has_click_left


def forget_counts(state: CampaignState, before: ConfigureCampaign | None) -> CampaignState:
    """Forget counts that were not kept up to date while there was no cap; the campaign asks for new ones."""
    config = state.configured
    if config.click_cap is None:
        state = _changed(state, clicked=0, clicked_before=None, clicked_until=BEGINNING, clicked_entries=())
    was_told = before is None or before.impression_cap is not None or before.click_cap is not None
    return state if was_told or config.impression_cap is None else _changed(state, counted=None)


def release_offers(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    """Release the holds that are over, as far as it is known which offers were seen; without a cap, all of them."""
    config, second = state.configured, int(now.timestamp())
    until = second - config.hold_seconds
    if state.offers_held_since is None or state.offers_held_since > until:
        return state
    if config.impression_cap is not None:
        known = 0 if state.counted is None else state.counted.complete_until
        until = min(until, known - config.hold_seconds)
    if state.offers_held_since > until:
        return request_counts(state, second, effects)
    offers = {number: one.expired_until(until) for number, one in state.offers.items()}
    has_more = any(one.expired != state.offers[number].expired for number, one in offers.items())
    state = _changed(
        state,
        offers=offers,
        offers_held_since=find_oldest_held(offers),
        offers_released_until=max(state.offers_released_until, until),
    )
    if has_more:
        effects += [Persist(), publish_spend(state, now)]
    return release_offers(state, now, effects)


def request_counts(state: CampaignState, second: int, effects: list[Effect]) -> CampaignState:
    """Ask for the counts, once a second at most; a campaign that does not run gets none and needs none."""
    config = state.configured
    if not config.is_running or state.counts_asked_second == second:
        return state
    request = CountsRequest(campaign_id=config.campaign_id, advertiser_id=config.advertiser_id)
    effects.append(Publish(COUNTS_TOPIC, request))
    return _changed(state, counts_asked_second=second)


def find_release_second(state: CampaignState, second: int) -> int | None:
    """Return when holds of offers are over, or the counts are to be asked for again; None if nothing is to be done."""
    since, config = state.offers_held_since, state.configured
    if since is None or not (config.is_running or config.impression_cap is None):
        return None
    over = since + config.hold_seconds
    return over if over > second else second + 1


def find_oldest_held(offers: Mapping[int, Lease]) -> int | None:
    return min((at for one in offers.values() if (at := one.find_oldest_hold()) is not None), default=None)


def find_oldest_offer(usage: LeaseUsage, offers: Lease | None) -> int | None:
    """Return the second of the oldest offer of a report."""
    heard = {} if offers is None else offers.heard
    return min((heard.get(at, at) for at, _ in usage.impressions), default=None)
