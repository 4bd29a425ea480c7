"""A campaign's charges: holds that were confirmed, and how they become durable."""

# pure

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from adloom.budgets.addresses import CAMPAIGN
from adloom.budgets.campaign.caps import count_click
from adloom.budgets.campaign.headroom import compute_pacing_allowance, find_unfit_budget
from adloom.budgets.campaign.lease import Lease
from adloom.budgets.campaign.reports import publish_spend, queue_report
from adloom.budgets.campaign.state import CampaignState, WaitingConfirm
from adloom.budgets.messages import (
    BudgetVerdict,
    ChargeKind,
    Confirm,
    DayTotal,
    MoneyKind,
    MoneyRow,
    WaitingOffer,
)
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Effect, Persist, RecordRow

FLUSH_EVENTS_MAX: Final = 20
FLUSH_AFTER: Final = timedelta(milliseconds=500)
ALLOTMENT_WAIT: Final = timedelta(
    seconds=5
)  # Other campaigns of the advertiser return within it what they can.
WAITING_MAX: Final = 1_000

# Looked up once: looking up a member of an enumeration costs more than comparing it.
_CHARGE: Final = MoneyKind.CHARGE
_CLICK: Final = ChargeKind.CLICK

_changed = msgspec.structs.replace


def apply_confirms(
    state: CampaignState, confirms: Sequence[Confirm], now: datetime, effects: list[Effect]
) -> CampaignState:
    """Charge holds, summed by lease and second if all are covered; else one by one, with the same result."""
    new = _drop_buffered(state, confirms)
    if not new:
        return state
    leases = _charge_leases(state, new)
    if leases is None:
        for confirm in new:
            state = apply_confirm(state, confirm, now, effects)
        return state
    rows = [_build_row(state, _CHARGE, confirm, leases[confirm.lease], now) for confirm in new]
    amounts = {number: lease.charged - state.leases[number].charged for number, lease in leases.items()}
    by_day = dict(state.spent_by_day)
    for number, amount in amounts.items():
        by_day[leases[number].day] = by_day.get(leases[number].day, 0) + amount
    of_window = sum(amount for number, amount in amounts.items() if leases[number].window == state.window)
    state = _changed(
        state,
        buffer=(*state.buffer, *rows),
        flush_at=state.flush_at or now + FLUSH_AFTER,
        leases={**state.leases, **leases},
        spent_total=Micros(state.spent_total + sum(amounts.values())),
        spent_by_day=by_day,
        spent_window=Micros(state.spent_window + of_window),
    )
    return flush_if_due(state, now, effects)


def apply_confirm(
    state: CampaignState, confirm: Confirm, now: datetime, effects: list[Effect]
) -> CampaignState:
    """Charge a confirm to its hold; one whose hold is missing or has expired is charged only if budget is left."""
    if _is_buffered(state, confirm):
        return state
    lease = _find_covering_lease(state, confirm)
    if lease is None:
        return _apply_unheld(state, confirm, now, effects)
    row = _build_row(state, _CHARGE, confirm, lease, now)
    state = _changed(
        state,
        buffer=(*state.buffer, row),
        flush_at=state.flush_at or now + FLUSH_AFTER,
        **_list_changes_by_charge(state, row, lease),
    )
    return flush_if_due(state, now, effects)


def _apply_unheld(
    state: CampaignState, confirm: Confirm, now: datetime, effects: list[Effect]
) -> CampaignState:
    """Charge what fits the rest of the budgets; if only the advertiser's is short, it waits a little for more of it."""
    if confirm.kind is _CLICK:
        state, is_within_cap = count_click(state, confirm.entry_id)
        if not is_within_cap:
            return _record_unheld(state, confirm, now, effects, kind=MoneyKind.OVER_CAP)
    unfit = _find_unfit(state, confirm, now)
    if unfit is not BudgetVerdict.ADVERTISER_BUDGET or len(state.waiting) >= WAITING_MAX:
        return _record_unheld(state, confirm, now, effects, kind=_choose_kind(confirm, unfit))
    one = WaitingConfirm(confirm, now + ALLOTMENT_WAIT)
    state = _changed(state, waiting=(*state.waiting, one), is_giving_back=False)
    effects += [RecordRow(WaitingOffer(request_id=confirm.request_id, slot=confirm.slot)), Persist()]
    return queue_report(state, now, effects)


def settle_waiting(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    """Charge what waits and fits by now; what has waited long enough is free."""
    left: list[WaitingConfirm] = []
    # Up to a thousand wait, most of one price: what was found out holds until one is charged.
    known: dict[tuple[Micros, ChargeKind], BudgetVerdict | None] = {}
    for one in state.waiting:
        price = one.confirm.amount, one.confirm.kind
        if price not in known:
            known[price] = _find_unfit(state, one.confirm, now)
        unfit = known[price]
        # A deadline further away means that the clock was set back.
        is_patient = one.until - ALLOTMENT_WAIT <= now < one.until
        if unfit is BudgetVerdict.ADVERTISER_BUDGET and is_patient:
            left.append(one)
        else:
            state = _changed(state, waiting=tuple(left))
            state = _record_unheld(state, one.confirm, now, effects, kind=_choose_kind(one.confirm, unfit))
            known.clear()
    return _changed(state, waiting=tuple(left))


def _find_unfit(state: CampaignState, confirm: Confirm, now: datetime) -> BudgetVerdict | None:
    """Return what an event without a hold does not fit; an impression must also be within the pace."""
    amount, is_paced = (
        confirm.amount,
        confirm.kind is not _CLICK and state.configured.daily_budget is not None,
    )
    if is_paced and state.spent_window + amount > compute_pacing_allowance(state, now):
        return BudgetVerdict.PACING
    return find_unfit_budget(state, amount)


def _choose_kind(confirm: Confirm, unfit: BudgetVerdict | None) -> MoneyKind:
    if unfit is None:
        return _CHARGE
    return MoneyKind.OVER_BUDGET if confirm.kind is _CLICK else MoneyKind.UNBILLED


def _record_unheld(
    state: CampaignState, confirm: Confirm, now: datetime, effects: list[Effect], *, kind: MoneyKind
) -> CampaignState:
    lease = state.leases.get(confirm.lease) if confirm.kind is _CLICK else None
    if lease is not None and lease.window != state.window:
        lease = None  # It is charged to the budget of today.
    row = _build_row(state, kind, confirm, lease, now)
    changes: dict[str, Any] = {}
    if kind is _CHARGE:
        changes = _list_changes_by_charge(state, row, None)
        if lease is not None and lease.is_by_click:
            clicked = lease.clicked_at(confirm.second, confirm.amount)
            changes["leases"] = {**state.leases, lease.number: clicked}
    state = _changed(
        state, buffer=(*state.buffer, row), flush_at=state.flush_at or now + FLUSH_AFTER, **changes
    )
    return flush_if_due(state, now, effects)


def flush_if_due(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    """Flush when the buffer is full, or its first row has waited long enough."""
    # A time further away means that the clock was set back: then flush at once.
    is_due = state.flush_at is not None and not state.flush_at - FLUSH_AFTER <= now < state.flush_at
    if not is_due and len(state.buffer) < FLUSH_EVENTS_MAX:
        return state
    return flush_and_publish(state, now, effects)


def flush_and_publish(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    state = flush(state, effects)
    effects.append(publish_spend(state, now))
    return queue_report(state, now, effects)


def flush(state: CampaignState, effects: list[Effect]) -> CampaignState:
    if not state.buffer:
        return state
    campaign_id = state.configured.campaign_id
    effects += map(RecordRow, state.buffer)
    days = {row.day for row in state.buffer if row.kind is _CHARGE}
    effects += [
        RecordRow(DayTotal(kind=CAMPAIGN, id=campaign_id, day=day, spent=Micros(state.spent_by_day[day])))
        for day in sorted(days)
    ]
    effects.append(Persist())
    return _changed(state, buffer=(), flush_at=None)


def _is_buffered(state: CampaignState, confirm: Confirm) -> bool:
    """Whether the offer is charged but not stored yet, or waits: its confirm may be repeated."""
    number = confirm.request_id.int
    for row in state.buffer:
        assert row.request_id is not None, "only offers are buffered"
        if row.request_id.int == number and row.slot == confirm.slot:
            return True
    return any(
        one.confirm.request_id.int == number and one.confirm.slot == confirm.slot for one in state.waiting
    )


def _drop_buffered(state: CampaignState, confirms: Sequence[Confirm]) -> Sequence[Confirm]:
    known = {(row.request_id.int, row.slot) for row in state.buffer if row.request_id is not None}
    known |= {(one.confirm.request_id.int, one.confirm.slot) for one in state.waiting}
    new: dict[tuple[int, int], Confirm] = {}
    for confirm in confirms:
        new.setdefault((confirm.request_id.int, confirm.slot), confirm)
    return [confirm for offer, confirm in new.items() if offer not in known]


def _charge_leases(state: CampaignState, confirms: Sequence[Confirm]) -> Mapping[int, Lease] | None:
    """Charge each lease the sum of each second; None if one does not cover it."""
    by_lease: dict[int, dict[int, int]] = {}
    for confirm in confirms:
        sums = by_lease.setdefault(confirm.lease, {})
        sums[confirm.second] = sums.get(confirm.second, 0) + confirm.amount
    leases: dict[int, Lease] = {}
    for number, sums in by_lease.items():
        lease = state.leases.get(number)
        if lease is None or lease.is_by_click:
            return None
        if any(lease.has_expired(second, released_until=state.released_until) for second in sums):
            return None
        charged = lease.charged_in(sums)
        if charged is None:
            return None
        leases[number] = charged
    return leases


def _find_covering_lease(state: CampaignState, confirm: Confirm) -> Lease | None:
    lease = state.leases.get(confirm.lease)
    if lease is None or not _is_covered(state, lease, confirm.second, confirm.amount):
        return None
    return lease


def _is_covered(state: CampaignState, lease: Lease, second: int, amount: Micros) -> bool:
    if lease.is_by_click or lease.has_expired(second, released_until=state.released_until):
        return False
    return lease.covers(second, amount)


def _list_changes_by_charge(state: CampaignState, row: MoneyRow, lease: Lease | None) -> dict[str, Any]:
    amount = row.amount
    changes: dict[str, Any] = {
        "spent_total": state.spent_total + amount,
        "spent_by_day": {**state.spent_by_day, row.day: state.spent_by_day.get(row.day, 0) + amount},
    }
    if row.window == state.window:
        changes["spent_window"] = state.spent_window + amount
    if lease is not None:
        changes["leases"] = {**state.leases, lease.number: lease.charged_at(row.second, amount)}
    return changes


def _build_row(
    state: CampaignState, kind: MoneyKind, confirm: Confirm, lease: Lease | None, now: datetime
) -> MoneyRow:
    return MoneyRow(
        kind=kind,
        campaign_id=state.configured.campaign_id,
        advertiser_id=state.configured.advertiser_id,
        day=state.day if lease is None else lease.day,
        window=state.window if lease is None else lease.window,
        amount=confirm.amount,
        at=now,
        lease=0 if lease is None else lease.number,
        second=confirm.second,
        request_id=confirm.request_id,
        slot=confirm.slot,
        confirmed_by=confirm.kind,
        banner_id=confirm.banner_id,
        placement_id=confirm.placement_id,
    )
