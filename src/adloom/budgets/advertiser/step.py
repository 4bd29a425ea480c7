"""How an advertiser handles a message: a pure step."""

# pure

from datetime import date, datetime, timedelta
from typing import Final, assert_never

import msgspec

from adloom.budgets.addresses import ADVERTISER, SPEND_TOPIC
from adloom.budgets.advertiser.allot import (
    ask_all_back,
    ask_back,
    ask_back_again,
    compute_unallotted,
    is_over_budget,
    replace_slice,
    serve,
    serve_waiting,
)
from adloom.budgets.advertiser.state import NOTHING, AdvertiserState, Slice, build_status
from adloom.budgets.messages import (
    AdvertiserExhausted,
    AdvertiserMessage,
    AdvertiserRestored,
    AskBudget,
    CheckClock,
    ConfigureAdvertiser,
    DayTotal,
    SpendReport,
)
from adloom.core.money import Micros
from adloom.core.random import Chance
from adloom.runtime.actors.actor import Effect, Persist, Publish, RecordRow, Reply, StepResult, Wake
from adloom.schedule.budget_day import build_budget_day, find_budget_day

DAYS_KEPT: Final = timedelta(
    days=3
)  # Before a day that ends. Longer than anything of a day may still be charged.

_changed = msgspec.structs.replace


def step(
    state: AdvertiserState, message: AdvertiserMessage, now: datetime, chance: Chance
) -> StepResult[AdvertiserState]:
    del chance
    effects: list[Effect] = []
    before = state.config
    if isinstance(message, ConfigureAdvertiser) and (before is None or message.version >= before.version):
        state = _changed(state, config=message)
    config = state.config
    if config is None:
        return StepResult(state)
    state = _advance(state, now, effects)
    match message:
        case ConfigureAdvertiser():
            state = _apply_configuration(state, before, effects)
        case SpendReport():
            state = _apply_report(state, message, now, effects)
        case CheckClock():
            pass
        case AskBudget():
            effects.append(Reply(build_status(state)))
        case _:
            assert_never(message)
    state = _publish_transition(state, now, effects)
    ends_at = build_budget_day(state.day, config.timezone).ends_at
    effects.append(Wake(ends_at if state.is_exhausted else None))
    return StepResult(state, tuple(effects))


def advance_to(state: AdvertiserState, now: datetime) -> AdvertiserState:
    """Bring a stored state up to the clock, for readers."""
    return state if state.config is None else _advance(state, now, [])


def _advance(state: AdvertiserState, now: datetime, effects: list[Effect]) -> AdvertiserState:
    if state.day > date.min and now < build_budget_day(state.day, state.configured.timezone).ends_at:
        return state
    return _roll_day(state, find_budget_day(now, state.configured.timezone).day, effects)


def _roll_day(state: AdvertiserState, day: date, effects: list[Effect]) -> AdvertiserState:
    """Start a new day; days never go back. Campaigns report theirs themselves."""
    if day <= state.day:
        return state
    # Of the last days that it has lived through: after an outage campaigns still report what they spent before it.
    oldest = (state.day if state.day > date.min else day) - DAYS_KEPT
    slices = {campaign_id: one for campaign_id, one in state.slices.items() if one.day >= oldest}
    effects.append(Persist())
    return _changed(
        state,
        day=day,
        known_from=oldest,
        slices=slices,
        spent=Micros(sum(one.get_spent(day) for one in slices.values())),
        allotted=Micros(sum(one.get_allotted(day) for one in slices.values())),
        cost_max=NOTHING,
        waiting=(),
    )


def _apply_configuration(
    state: AdvertiserState, before: ConfigureAdvertiser | None, effects: list[Effect]
) -> AdvertiserState:
    """Serve waiting campaigns, or take back what may no longer be spent; nothing if nothing changed."""
    config = state.configured
    if before is not None and _changed(before, version=config.version) == config:
        return state
    effects.append(Persist())
    if is_over_budget(state):
        ask_all_back(state, effects)
        return state
    return serve_waiting(state, effects)


def _apply_report(
    state: AdvertiserState, report: SpendReport, now: datetime, effects: list[Effect]
) -> AdvertiserState:
    """Answer a report; a repeated one gets the same answer again."""
    advertiser_id = state.configured.advertiser_id
    known = state.slices.get(report.campaign_id)
    number = (report.incarnation, report.sequence)
    if known is not None and number < (known.incarnation, known.sequence):
        return state
    effects.append(Persist())
    if known is None or number > (known.incarnation, known.sequence):
        state = _roll_day(state, report.day, effects)
        oldest = state.known_from or state.day - DAYS_KEPT
        one = _build_slice(report, known, oldest=oldest)
        state = replace_slice(state, report.campaign_id, one)
        # What other campaigns spent on days before is forgotten.
        effects += [
            RecordRow(DayTotal(kind=ADVERTISER, id=advertiser_id, day=day, spent=state.get_spent(day)))
            for day, amount in sorted(report.spent_by_day.items())
            if day >= oldest and (known is None or amount != known.get_spent(day))
        ]
    state = serve(state, report.campaign_id, effects, is_needed=report.is_needed)
    if is_over_budget(state):
        state = ask_back_again(state, report.campaign_id, now, effects)
    if report.campaign_id in state.waiting and compute_unallotted(state) is not None:
        state = ask_back(state, now, effects, for_campaign=report.campaign_id)
    return state


def _build_slice(report: SpendReport, known: Slice | None, *, oldest: date) -> Slice:
    before = {} if known is None else known.spent_by_day
    spent = {day: amount for day, amount in {**before, **report.spent_by_day}.items() if day >= oldest}
    had = 0 if known is None else known.get_allotted(report.day)
    return Slice(
        incarnation=report.incarnation,
        sequence=report.sequence,
        day=report.day,
        spent_by_day=spent,
        committed=report.committed,
        # What it still wants of what it had, it keeps; more is for `served` to find.
        allotted=Micros(max(report.committed, min(report.target, had))),
        target=report.target,
        cost=report.cost,
    )


def _publish_transition(state: AdvertiserState, now: datetime, effects: list[Effect]) -> AdvertiserState:
    """Publish when the budget runs out, or is restored: on the transition only."""
    is_exhausted = _is_exhausted(state)
    if is_exhausted == state.is_exhausted:
        return state
    advertiser_id = state.configured.advertiser_id
    news = (
        AdvertiserExhausted(advertiser_id=advertiser_id, at=now)
        if is_exhausted
        else AdvertiserRestored(advertiser_id=advertiser_id, at=now)
    )
    effects += [Persist(), Publish(SPEND_TOPIC, news)]
    return _changed(state, is_exhausted=is_exhausted)


def _is_exhausted(state: AdvertiserState) -> bool:
    """Whether the rest pays for no offer of any campaign."""
    if state.configured.daily_budget is None:
        return False
    unspent = state.configured.daily_budget - state.spent
    if unspent >= max(1, state.cost_max):
        return False  # As nearly always: an advertiser may have thousands of campaigns.
    costs = (one.cost for one in state.slices.values() if one.day == state.day and one.cost > 0)
    return unspent < max(1, min(costs, default=1))
