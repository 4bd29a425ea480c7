"""Refunds: an admin gives back what was charged. The campaign's spend goes down, and its budgets allow as much again."""

# pure

from datetime import date, datetime, timedelta
from typing import Final

import msgspec

from adloom.budgets.addresses import ADVERTISER, CAMPAIGN
from adloom.budgets.campaign.bids import lower_spent_of_bids
from adloom.budgets.campaign.charges import flush
from adloom.budgets.campaign.pace import lower_spent_before
from adloom.budgets.campaign.reports import publish_spend, queue_report
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.messages import DayRefund, DayTotal, MoneyKind, MoneyRow, Refund
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Effect, Persist, RecordRow

RECENT: Final = timedelta(days=2)  # Advertisers know one more, and their day may be one ahead.
REFUNDS_KEPT: Final = 100  # Ids that are known as done; a request is repeated for seconds only.

_changed = msgspec.structs.replace


def apply_refund(state: CampaignState, refund: Refund, now: datetime, effects: list[Effect]) -> CampaignState:
    """Give back parts of charges, all or none; none if they are more than was spent, or were given back already."""
    if refund.refund_id in state.refunds or not _is_spent(state, refund):
        return state
    state = flush(_recall_days(state, refund), effects)
    by_day = dict(state.spent_by_day)
    for day, amount in _sum_by_day(refund).items():
        if _is_reported(state, day):
            by_day[day] -= amount
    of_window, today = _limit_to_window(state, refund), _sum_by_day(refund).get(state.day, 0)
    state = _changed(
        state,
        spent_total=Micros(state.spent_total - refund.amount),
        spent_window=Micros(state.spent_window - of_window),
        spent_by_day=by_day,
        pace=lower_spent_before(state, of_window),
        bids=lower_spent_of_bids(state, today),
        refunds=(*state.refunds, refund.refund_id)[-REFUNDS_KEPT:],
    )
    effects += map(RecordRow, _build_rows(state, refund, now))
    effects += [Persist(), publish_spend(state, now)]
    return queue_report(state, now, effects)


def _recall_days(state: CampaignState, refund: Refund) -> CampaignState:
    """Restore settled days that are recent: the advertiser still adds them up, and gets them with our report."""
    recent = {one.day: int(one.day_spent) for one in refund.parts if one.day >= state.day - RECENT}
    return _changed(state, spent_by_day={**recent, **state.spent_by_day})


def _is_reported(state: CampaignState, day: date) -> bool:
    """Whether the advertiser learns of a day by our report. We may know an older one still, and it does not."""
    return day in state.spent_by_day and day >= state.day - RECENT


def _is_spent(state: CampaignState, refund: Refund) -> bool:
    spent_by_day = {one.day: int(one.day_spent) for one in refund.parts} | state.spent_by_day
    return (
        refund.amount <= state.spent_total
        and _limit_to_window(state, refund) <= state.spent_window
        and all(amount <= spent_by_day[day] for day, amount in _sum_by_day(refund).items())
    )


def _limit_to_window(state: CampaignState, refund: Refund) -> int:
    return sum(one.amount for one in refund.parts if one.day == state.day and one.window == state.window)


def _sum_by_day(refund: Refund) -> dict[date, int]:
    sums: dict[date, int] = {}
    for one in refund.parts:
        sums[one.day] = sums.get(one.day, 0) + one.amount
    return sums


def _build_rows(state: CampaignState, refund: Refund, now: datetime) -> list[msgspec.Struct]:
    campaign_id, advertiser_id = state.configured.campaign_id, state.configured.advertiser_id
    rows: list[msgspec.Struct] = [
        MoneyRow(
            kind=MoneyKind.REFUND,
            campaign_id=campaign_id,
            advertiser_id=advertiser_id,
            day=one.day,
            window=one.window,
            amount=one.amount,
            at=now,
            lease=0,
            second=one.hour,
            request_id=refund.refund_id,
            slot=slot,
            banner_id=one.banner_id,
            placement_id=one.placement_id,
        )
        for slot, one in enumerate(refund.parts)
    ]
    for day, amount in sorted(_sum_by_day(refund).items()):
        if _is_reported(state, day):
            spent = Micros(state.spent_by_day[day])
            rows.append(DayTotal(kind=CAMPAIGN, id=campaign_id, day=day, spent=spent))
            continue
        rows.append(DayRefund(kind=CAMPAIGN, id=campaign_id, day=day, amount=Micros(amount)))
        if advertiser_id is not None:
            rows.append(DayRefund(kind=ADVERTISER, id=advertiser_id, day=day, amount=Micros(amount)))
    return rows
