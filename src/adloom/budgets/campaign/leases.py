"""A campaign's leases: reports, grants, recalls and released holds."""

# pure

from datetime import datetime
from typing import Final

import msgspec

from adloom.budgets.addresses import make_session_topic
from adloom.budgets.campaign.bids import get_multiplier, update_bids
from adloom.budgets.campaign.caps import (
    find_oldest_held,
    find_oldest_offer,
    grant_offers,
    release_offers,
    report_offers,
    request_counts,
    size_grant,
)
from adloom.budgets.campaign.headroom import (
    compute_headroom,
    compute_offers_left,
    is_click_cap_reached,
    limit_to_caps,
)
from adloom.budgets.campaign.lease import Lease
from adloom.budgets.campaign.pace import get_throttle, update_pace
from adloom.budgets.campaign.reports import (
    ask_for_more,
    compute_spare,
    give_back,
    has_unmet_demand,
    publish_spend,
    queue_report,
)
from adloom.budgets.campaign.state import NOTHING, CampaignState
from adloom.budgets.messages import (
    BudgetVerdict,
    LeaseAnswer,
    LeaseUsage,
    MoneyKind,
    MoneyRow,
    Recall,
    SessionOver,
)
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Effect, Persist, Publish, RecordRow
from adloom.schedule.budget_day import build_budget_day

IDLE_SECONDS: Final = 2  # A process with visitors makes offers every second.
SESSIONS_OVER_SECONDS: Final = 600  # Longer than a message can be on its way.

_changed = msgspec.structs.replace


def apply_usage(
    state: CampaignState, usage: LeaseUsage, now: datetime, effects: list[Effect]
) -> CampaignState:
    """Apply a process's report, and grant or take back what it wants."""
    known = _find_lease(state, usage)
    if known is None:
        effects.append(_build_void(state, usage, now))
        return state
    if usage.report < known.reported:
        return state  # Overtaken by a later one.
    if usage.report == known.reported:
        # The answer was lost.
        usage = _limit_to_offers(state, known, usage)
        effects += [
            *_confirm_ownership(state, known),
            _build_answer(state, usage, known, _find_verdict(state, known, usage, now)),
        ]
        return state
    second = int(now.timestamp())
    lease = known.reported_given(usage.given, report=usage.report, second=second)
    offers = report_offers(state, known, usage, second)
    if not lease.is_sound or (offers is not None and not offers.is_sound):
        effects += [Persist(), _build_void(state, usage, now)]
        return _close_lease(state, known, second)
    state = _return_unknown(_record_usage(state, lease, usage, offers), usage, second)
    state = update_bids(state, usage, now, effects)
    state = update_pace(state, usage, now)
    if offers is not None:
        left = compute_offers_left(state) if _may_grant(state, lease, usage) else 0
        granted = grant_offers(offers, left, usage, sessions=_count_sessions(state), second=second)
        state = _changed(state, offers={**state.offers, lease.number: granted})
        if state.counted is None:
            state = request_counts(state, second, effects)
        usage = _limit_to_offers(state, lease, usage)
    has_enough = usage.want <= lease.unassigned
    lease = lease.granted_up_to(usage.want, second=second) if has_enough else _grant(state, lease, usage, now)
    state = state.with_lease(lease)
    if not has_enough or _lacks_offers(state, lease, usage):
        state = _request_missing(state, lease, usage, now, effects)
    elif state.is_giving_back and compute_spare(state):
        state = queue_report(state, now, effects)
    is_changed = bool(usage.given) or lease.granted != known.granted or usage.lease != lease.number
    if is_changed or offers is not None:
        # Otherwise nothing has changed but the number of the report, which may be forgotten.
        effects.append(Persist())
    effects += [
        *_confirm_ownership(state, lease),
        _build_answer(state, usage, lease, _find_verdict(state, lease, usage, now)),
    ]
    return state


def recall(state: CampaignState, effects: list[Effect], *, idle_until: int | None = None) -> None:
    """Ask processes for what they have not given: all of them, or only those that are idle."""
    for lease in state.leases.values():
        has_nothing = lease.unassigned == 0 and not _count_unassigned(state, lease)
        if has_nothing or lease.closed_second is not None:
            continue
        if idle_until is None or lease.active_second <= idle_until:
            recall = Recall(campaign_id=state.configured.campaign_id, session=lease.session)
            effects.append(Publish(make_session_topic(lease.session), recall))


def close_session(state: CampaignState, over: SessionOver, effects: list[Effect]) -> CampaignState:
    """Close the leases of a process that is gone: what it may have offered counts as offered."""
    oldest = over.second - SESSIONS_OVER_SECONDS
    known = {session: second for session, second in state.sessions_over.items() if second > oldest}
    state = _changed(state, sessions_over={**known, over.session: over.second})
    for lease in state.leases.values():
        if lease.session == over.session and lease.closed_second is None:
            state = _close_lease(state, lease, over.second)
    effects.append(Persist())
    return drop_settled(state)


def release_expired(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    """Release expired holds, and publish it: others may have them now."""
    state = _release_money(state, now, effects)
    released = release_offers(state, now, effects)
    return state if released is state else drop_settled(released)


def _release_money(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    until = int(now.timestamp()) - state.configured.hold_seconds
    if state.held_since is None or state.held_since > until:
        return state
    leases = {number: lease.expired_until(until) for number, lease in state.leases.items()}
    rows = [
        _build_release(state, lease, Micros(back), now)
        for number, lease in leases.items()
        if (back := lease.expired - state.leases[number].expired)
    ]
    state = _changed(
        state,
        leases=leases,
        held_since=_find_min_second(*(one.find_oldest_hold() for one in leases.values())),
        released_until=max(state.released_until, until),
        # A state of the version before has one second for both.
        offers_held_since=find_oldest_held(state.offers),
    )
    state = drop_settled(state)
    if not rows:
        return state
    effects += [*map(RecordRow, rows), publish_spend(state, now)]
    # The advertiser asked for it while it was on hold: return it now.
    return queue_report(state, now, effects) if state.is_giving_back and compute_spare(state) else state


def drop_settled(state: CampaignState) -> CampaignState:
    """Drop leases that are settled and no longer used, and days that only they kept."""
    newest = {lease.session: lease.number for lease in state.leases.values()}
    kept = {
        number: lease
        for number, lease in state.leases.items()
        if not lease.is_settled
        or (number in state.offers and not state.offers[number].is_settled)
        or (lease.closed_second is None and number == newest[lease.session])
    }
    spent = state.spent_by_day
    if state.report is None and not state.buffer:
        # Otherwise the advertiser does not know yet what was spent on them.
        days = {state.day, *(lease.day for lease in kept.values())}
        spent = {day: amount for day, amount in spent.items() if day in days}
    if len(kept) == len(state.leases) and len(spent) == len(state.spent_by_day):
        return state
    offers = {number: one for number, one in state.offers.items() if number in kept}
    return _changed(state, leases=kept, offers=offers, spent_by_day=spent)


def _find_lease(state: CampaignState, usage: LeaseUsage) -> Lease | None:
    """Return the lease of a report, or a new one; None if the session is over."""
    if usage.session in state.sessions_over:
        return None
    if usage.lease:
        lease = state.leases.get(usage.lease)
        is_theirs = lease is not None and lease.session == usage.session and lease.closed_second is None
        return lease if is_theirs else None
    is_by_click = usage.price > 0
    return state.find_lease(usage.session, is_by_click=is_by_click) or Lease(
        number=state.leases_made + 1,
        session=usage.session,
        window=state.window,
        day=state.day,
        is_by_click=is_by_click,
        reported=usage.report - 1,
    )


def _is_current(state: CampaignState, lease: Lease, usage: LeaseUsage) -> bool:
    """Whether a lease is of this window, and of what the campaign is charged by now."""
    return lease.window == state.window and lease.is_by_click == (usage.price > 0)


def _record_usage(
    state: CampaignState, lease: Lease, usage: LeaseUsage, offers: Lease | None
) -> CampaignState:
    oldest = min((lease.heard.get(at, at) for at, _ in usage.given), default=None)
    oldest_offer = find_oldest_offer(usage, offers)
    return _changed(
        state,
        leases={**state.leases, lease.number: lease},
        offers=state.offers if offers is None else {**state.offers, lease.number: offers},
        leases_made=max(state.leases_made, lease.number),
        cost=usage.cost,
        price=usage.price,
        site_key=usage.site_key,
        held_since=_find_min_second(state.held_since, oldest),
        offers_held_since=_find_min_second(state.offers_held_since, oldest_offer),
    )


def _return_unknown(state: CampaignState, usage: LeaseUsage, second: int) -> CampaignState:
    """Take back what a process has in leases before this one: where their answers were lost, it never will return it."""
    before = [
        one
        for one in state.leases.values()
        if one.session == usage.session and one.reported < usage.report and one.closed_second is None
    ]
    if not before:
        return state
    leases, offers = dict(state.leases), dict(state.offers)
    for one in before:
        leases[one.number] = one.granted_up_to(NOTHING, second=second)
        if one.number in offers:
            offers[one.number] = offers[one.number].granted_up_to(NOTHING, second=second)
    return _changed(state, leases=leases, offers=offers)


def _grant(state: CampaignState, lease: Lease, usage: LeaseUsage, now: datetime) -> Lease:
    """Grant what fits: less, the less is left for all processes."""
    if not _may_grant(state, lease, usage):
        return lease
    left = compute_headroom(state, now, is_paced=True, is_allotted=False).amount
    more = usage.want - lease.unassigned
    # If another process has a visitor waiting, leave it an offer.
    left_for_others = usage.cost if has_unmet_demand(state, now) and not usage.is_needed else 0
    if left is not None:
        sessions = _count_sessions(state)
        more = size_grant(more, left - left_for_others, cost=usage.cost, sessions=sessions)
    if state.configured.is_allotted:
        more = max(0, min(more, compute_spare(state) - left_for_others))
    whole = (lease.unassigned + more) // usage.cost * usage.cost
    return lease.granted_up_to(Micros(max(lease.unassigned, whole)), second=int(now.timestamp()))


def _limit_to_offers(state: CampaignState, lease: Lease, usage: LeaseUsage) -> LeaseUsage:
    """Let a process want no money for offers that an impression cap does not leave it.

    It keeps what it has until it returns it: it may need it at any moment, if the cap is lifted.
    """
    if not usage.want_impressions or not state.configured.is_running or state.counted is None:
        return usage
    needed = _count_unassigned(state, lease) * max(usage.cost, usage.price)
    return _changed(usage, want=Micros(min(usage.want, max(lease.unassigned, needed))))


def _lacks_offers(state: CampaignState, lease: Lease, usage: LeaseUsage) -> bool:
    return usage.want_impressions > 0 and _count_unassigned(state, lease) == 0


def _may_grant(state: CampaignState, lease: Lease, usage: LeaseUsage) -> bool:
    is_running = state.configured.is_running and _is_current(state, lease, usage)
    return is_running and not is_click_cap_reached(state)


def _count_sessions(state: CampaignState) -> int:
    open_ones = {lease.session for lease in state.leases.values() if lease.closed_second is None}
    return max(1, len(open_ones))


def _find_verdict(state: CampaignState, lease: Lease, usage: LeaseUsage, now: datetime) -> BudgetVerdict:
    if not _is_current(state, lease, usage):
        return BudgetVerdict.GRANTED
    if lease.unassigned >= min(usage.want, usage.cost):
        is_capped = _lacks_offers(state, lease, usage)
        return BudgetVerdict.IMPRESSION_CAP if is_capped else BudgetVerdict.GRANTED
    if not state.configured.is_running:
        return BudgetVerdict.NOT_RUNNING
    if is_click_cap_reached(state):
        return BudgetVerdict.CLICK_CAP
    return compute_headroom(state, now, is_paced=True).verdict


def _request_missing(
    state: CampaignState, lease: Lease, usage: LeaseUsage, now: datetime, effects: list[Effect]
) -> CampaignState:
    """Get what this process lacks from idle processes, and from the advertiser ahead of need."""
    config = state.configured
    if not config.is_running or not _is_current(state, lease, usage):
        return state
    second = int(now.timestamp())
    lacks_offers = state.counted is not None and _lacks_offers(state, lease, usage)
    lacks_money = not lacks_offers and lease.unassigned < usage.cost
    if usage.is_needed and (lacks_offers or lacks_money):
        recall(state, effects, idle_until=second - IDLE_SECONDS)
    if not limit_to_caps(state, usage.cost):
        has_more = config.is_allotted and not state.waiting and (state.wanted or compute_spare(state))
        return give_back(state, now, effects, is_all=True) if has_more else state
    is_turned_away = usage.is_needed and lacks_money
    is_urgent = is_turned_away and not has_unmet_demand(state, now)
    if is_turned_away:
        state = _changed(state, needed_second=max(state.needed_second, second))
    if lacks_offers or not config.is_allotted:
        return state
    return ask_for_more(state, usage.want, now, effects, is_urgent=is_urgent)


def _close_lease(state: CampaignState, lease: Lease, second: int) -> CampaignState:
    closed = lease.closed_at(second)
    held_since = _find_min_second(state.held_since, closed.find_oldest_hold())
    state = _changed(state, leases={**state.leases, lease.number: closed}, held_since=held_since)
    if lease.number not in state.offers:
        return state
    offers = {**state.offers, lease.number: state.offers[lease.number].closed_at(second)}
    return _changed(state, offers=offers, offers_held_since=find_oldest_held(offers))


def _find_min_second(*seconds: int | None) -> int | None:
    return min((second for second in seconds if second is not None), default=None)


def _build_answer(state: CampaignState, usage: LeaseUsage, lease: Lease, verdict: BudgetVerdict) -> Publish:
    day = build_budget_day(lease.day, state.configured.timezone)
    offers = state.offers.get(lease.number)
    answer = LeaseAnswer(
        campaign_id=state.configured.campaign_id,
        session=usage.session,
        report=usage.report,
        lease=lease.number,
        granted=lease.granted,
        given=lease.given,
        impressions_granted=0 if offers is None else offers.granted,
        impressions_given=0 if offers is None else offers.given,
        # One that is not current has ended, whatever the process's clock says.
        ends_at=day.ends_at if _is_current(state, lease, usage) else day.starts_at,
        verdict=verdict,
        throttle=get_throttle(state),
        multiplier=get_multiplier(state),
    )
    return Publish(make_session_topic(usage.session), answer)


def _confirm_ownership(state: CampaignState, lease: Lease) -> list[Effect]:
    """Persist before a process gets the grant.

    This fails if another worker owns the campaign by now, whose state may be older than ours.
    """
    return [Persist()] if lease.unassigned or _count_unassigned(state, lease) else []


def _count_unassigned(state: CampaignState, lease: Lease) -> int:
    """Return how many offers a process can still make of a cap."""
    offers = state.offers.get(lease.number)
    return 0 if offers is None else offers.unassigned


def _build_void(state: CampaignState, usage: LeaseUsage, now: datetime) -> Publish:
    answer = LeaseAnswer(
        campaign_id=state.configured.campaign_id,
        session=usage.session,
        report=usage.report,
        lease=0,
        granted=NOTHING,
        given=NOTHING,
        ends_at=now,
        verdict=BudgetVerdict.NOT_RUNNING,
    )
    return Publish(make_session_topic(usage.session), answer)


def _build_release(state: CampaignState, lease: Lease, amount: Micros, now: datetime) -> MoneyRow:
    return MoneyRow(
        kind=MoneyKind.RELEASE,
        campaign_id=state.configured.campaign_id,
        advertiser_id=state.configured.advertiser_id,
        day=lease.day,
        window=lease.window,
        amount=amount,
        at=now,
        lease=lease.number,
        second=int(now.timestamp()),
    )
