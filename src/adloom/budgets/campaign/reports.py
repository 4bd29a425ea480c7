"""What a campaign publishes of its budget, its reports to its advertiser, and the allotments that answer them.

One report is in flight at a time. It is repeated until it is answered, each time with current figures;
what happened meanwhile follows with the next. Amounts are totals, and the advertiser keeps the highest
sequence, so nothing is counted twice and nothing has to be remembered.
"""

# pure

from datetime import datetime, timedelta
from typing import Final

import msgspec

from adloom.budgets.addresses import SPEND_TOPIC, make_advertiser_address
from adloom.budgets.campaign.headroom import compute_headroom, find_exhausted_budget, limit_to_caps
from adloom.budgets.campaign.state import NOTHING, CampaignState, PendingReport
from adloom.budgets.messages import Allotment, CampaignExhausted, CampaignRestored, SpendReport, SpendUpdate
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Effect, Persist, Publish, Tell


def build_spend_update(state: CampaignState, now: datetime) -> SpendUpdate:
    config = state.configured
    return SpendUpdate(
        campaign_id=config.campaign_id,
        advertiser_id=config.advertiser_id,
        day=state.day,
        window=state.window,
        daily_budget=config.daily_budget,
        total_budget=config.total_budget,
        spent_window=state.spent_window,
        spent_today=state.spent_today,
        spent_total=state.spent_total,
        held=state.held,
        leased=state.leased,
        at=now,
    )


def publish_spend(state: CampaignState, now: datetime) -> Publish:
    return Publish(SPEND_TOPIC, build_spend_update(state, now))


def publish_transition(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    """Publish when the budget runs out, or is restored: on the transition only."""
    verdict = find_exhausted_budget(state)
    if verdict is state.exhausted:
        return state
    if verdict is None:
        effects.append(
            Publish(SPEND_TOPIC, CampaignRestored(campaign_id=state.configured.campaign_id, at=now))
        )
    elif state.exhausted is None:
        news = CampaignExhausted(campaign_id=state.configured.campaign_id, verdict=verdict, at=now)
        effects.append(Publish(SPEND_TOPIC, news))
    effects.append(Persist())
    return msgspec.structs.replace(state, exhausted=verdict)


ATTEMPTS_MAX: Final = 5
BACKOFF_MIN: Final = timedelta(milliseconds=100)
BACKOFF_MAX: Final = timedelta(seconds=5)
RECONCILE_AFTER: Final = timedelta(minutes=2)
NEED_SECONDS: Final = 2  # For so long a process that turned a visitor away counts as waiting.

_changed = msgspec.structs.replace


def retry_delay(attempt: int) -> timedelta:
    """How long to wait for an answer; attempts count from 1."""
    return min(BACKOFF_MAX, BACKOFF_MIN * 2 ** (attempt - 1))


def has_unmet_demand(state: CampaignState, now: datetime) -> bool:
    """Whether a process turned a visitor away within the last seconds."""
    return int(now.timestamp()) <= state.needed_second + NEED_SECONDS


def compute_spare(state: CampaignState) -> Micros:
    """Allotted, and not committed; nothing if it pays for no click."""
    if state.allotted < state.firm_today + state.price:
        return NOTHING
    return Micros(max(0, state.allotted - state.committed_today))


def queue_report(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    """Report to the advertiser now, or as soon as it has answered the last report."""
    if state.configured.advertiser_id is None:
        return state
    if state.report is not None:
        return state if state.has_news else _changed(state, has_news=True)
    return _send_report(state, now, effects, attempts=1)


def repeat_report_if_due(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    pending = state.report
    if pending is None or now < pending.again_at:
        return state
    return _send_report(state, now, effects, attempts=pending.attempts + 1)


def ask_for_more(
    state: CampaignState, want: Micros, now: datetime, effects: list[Effect], *, is_urgent: bool = False
) -> CampaignState:
    """Ask for an allotment ahead of need, within our own budgets.

    While there is none, ask once a second; at once if a visitor was just turned away.
    """
    want = _limit_to_use(state, Micros(max(want, state.price)), now)
    if compute_spare(state) >= want:
        return _changed(state, wanted=NOTHING) if state.wanted else state
    second = int(now.timestamp())
    is_asked = state.wanted and second <= state.asked_second and not is_urgent
    state = _changed(
        state,
        wanted=want,
        asked_second=max(state.asked_second, second),
        is_giving_back=False,
    )
    if is_asked:
        return state
    pending = state.report
    if pending is not None and pending.attempts > ATTEMPTS_MAX:
        # No answer for long, and now a visitor waits: try again.
        is_worth_it = now >= pending.again_at - RECONCILE_AFTER + BACKOFF_MAX
        return _send_report(state, now, effects, attempts=pending.attempts) if is_worth_it else state
    return queue_report(state, now, effects)


def give_back(state: CampaignState, now: datetime, effects: list[Effect], *, is_all: bool) -> CampaignState:
    """Return to the advertiser what we have not committed and do not need."""
    is_kept = has_unmet_demand(state, now) and not is_all
    kept = _limit_to_use(state, compute_spare(state), now) if is_kept else NOTHING
    return queue_report(_changed(state, wanted=kept, is_giving_back=True), now, effects)


def apply_allotment(
    state: CampaignState, allotment: Allotment, now: datetime, effects: list[Effect]
) -> CampaignState:
    """Only the answer to the last report counts."""
    if allotment.sequence != state.sequence or allotment.day != state.day:
        return state
    is_more = allotment.allotted > state.allotted
    state = _changed(state, report=None, allotted=max(state.allotted, allotment.allotted))
    effects.append(Persist())
    if is_more and state.wanted:
        state = _changed(state, wanted=NOTHING)
        effects.append(publish_spend(state, now))
    return queue_report(state, now, effects) if state.has_news else state


def _limit_to_use(state: CampaignState, amount: Micros, now: datetime) -> Micros:
    """How much of an amount our own budgets and caps allow; nothing if that pays for no offer."""
    if not state.configured.is_running:
        return NOTHING
    amount = limit_to_caps(state, amount)
    left = compute_headroom(state, now, is_paced=True, is_allotted=False).amount
    if left is not None:
        # A click is paid out of what is left, and not only out of what can still be held.
        amount = Micros(min(amount, max(left, state.price if left else NOTHING)))
    return amount if amount >= max(1, state.cost) else NOTHING


def _send_report(
    state: CampaignState, now: datetime, effects: list[Effect], *, attempts: int
) -> CampaignState:
    config = state.configured
    assert config.advertiser_id is not None
    delay = retry_delay(attempts) if attempts <= ATTEMPTS_MAX else RECONCILE_AFTER
    # What confirms wait for is asked for from what is certain on; the rest of the holds gives way.
    wanted = _limit_to_use(state, state.wanted, now)
    committed = state.firm_today if state.waiting else state.committed_today
    kept = state.committed_today if state.is_giving_back else max(committed, state.allotted)
    price = max([state.offer_price, *(one.confirm.amount for one in state.waiting)])
    awaited = 0 if state.is_giving_back else len(state.waiting) * price
    report = SpendReport(
        campaign_id=config.campaign_id,
        incarnation=state.incarnation,
        sequence=state.sequence + 1,
        day=state.day,
        spent_by_day=state.spent_by_day,
        committed=committed,
        target=Micros(max(kept, committed + max(wanted, awaited))),
        cost=Micros(price if state.price or state.waiting else state.cost),
        is_needed=bool(state.waiting) or (wanted > 0 and has_unmet_demand(state, now)),
    )
    effects += [Persist(), Tell(make_advertiser_address(config.advertiser_id), report)]
    return _changed(
        state,
        sequence=report.sequence,
        report=PendingReport(attempts=attempts, again_at=now + delay),
        has_news=False,
        wanted=wanted,
        # What we no longer ask for is not ours from here on, whether the advertiser knows it yet or not.
        allotted=min(state.allotted, report.target),
    )
