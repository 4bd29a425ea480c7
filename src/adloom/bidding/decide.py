"""The multiplier of a window, for one campaign or many: strategy, guard and fallback; a function of state and counters."""

from collections.abc import Mapping, Sequence
from math import exp
from typing import Final

import msgspec

from adloom.bidding import guard, pacer
from adloom.bidding.features import SHARE_MIN, build_dqn_state, build_features, observe_window
from adloom.bidding.ports import ACTIONS, DQN_MAX, DQN_MIN, FleetAnswer, Nets
from adloom.bidding.state import BidState, counts_from_end
from adloom.bidding.window import FALLBACK, BidDecision, BidRules, BidStrategy, BidWindow

OPPORTUNITIES_MIN: Final = 30
LOG_SOUND_MAX: Final = 10.0  # A multiplier of 22,000; nets answer far less.
STRANGE_FEATURES: Final = 6  # A third of them beyond the clip
STRANGE_WINDOWS: Final = 4  # in so many windows in a row.
BELOW_MARKET: Final = "the target is below the market: at its full bid the campaign wins next to nothing"
BELOW_MARKET_AFTER: Final = 0.1  # Of the day's traffic,
BELOW_MARKET_SHARE: Final = 0.02  # less than so much of the budget's pace at the target,
BELOW_MARKET_WINS: Final = 0.1  # and at most so much of the last window's opportunities won.

_GUARDED: Final = frozenset({BidStrategy.FLEET, BidStrategy.DQN})

_changed = msgspec.structs.replace


class WindowRequest(msgspec.Struct, frozen=True):
    """A campaign's window that begins."""

    strategy: BidStrategy
    state: BidState
    window: BidWindow
    rules: BidRules = BidRules()


class WindowAnswer(msgspec.Struct, frozen=True):
    """The next state, and the decision."""

    state: BidState
    decision: BidDecision


class ShadowedAnswer(msgspec.Struct, frozen=True):
    """The next state, the decision, and what each other strategy would have decided."""

    state: BidState
    decision: BidDecision
    shadows: Mapping[BidStrategy, BidDecision]


class _Proposal(msgspec.Struct, frozen=True):
    """What a strategy says before the guard; a reason in place of a multiplier means the fallback."""

    state: BidState
    multiplier: float | None
    reason: str


def decide(request: WindowRequest, nets: Nets) -> WindowAnswer:
    return decide_all([request], nets)[0]


def decide_all(requests: Sequence[WindowRequest], nets: Nets) -> list[WindowAnswer]:
    """Decide for all at once: the nets run over all campaigns in one product."""
    requests = [_changed(one, window=one.window.drop_dust()) for one in requests]
    observed = [observe(one.state, one.window) for one in requests]
    proposals = dict[int, _Proposal]()
    by_strategy: dict[BidStrategy, list[int]] = {}
    for index, one in enumerate(requests):
        by_strategy.setdefault(one.strategy, []).append(index)
    for index in by_strategy.get(BidStrategy.FIXED, ()):
        proposals[index] = _Proposal(observed[index], 1.0, BidStrategy.FIXED)
    for index in by_strategy.get(BidStrategy.PACER, ()):
        multiplier = _compute_pace(observed[index], requests[index].window)
        proposals[index] = _Proposal(observed[index], multiplier, BidStrategy.PACER)
    for strategy, propose in ((BidStrategy.FLEET, _propose_fleet), (BidStrategy.DQN, _propose_dqn)):
        indexes = by_strategy.get(strategy, [])
        proposals.update(propose([(index, requests[index], observed[index]) for index in indexes], nets))
    return [_finish(one, proposals[index]) for index, one in enumerate(requests)]


def decide_with_shadows(requests: Sequence[WindowRequest], nets: Nets) -> list[ShadowedAnswer]:
    """Decide for all at once, and say what the other strategies would have done with the same counters."""
    requests = [_changed(one, window=one.window.drop_dust()) for one in requests]
    observed = [observe(one.state, one.window) for one in requests]
    asked = [(index, one, observed[index]) for index, one in enumerate(requests)]
    fleet, dqn = _propose_fleet(asked, nets), _propose_dqn(asked, nets)
    answers: list[ShadowedAnswer] = []
    for index, request, seen in asked:
        after = fleet[index].state
        chosen = dqn[index].state.chosen
        state = _changed(seen, hidden=after.hidden, strange=after.strange, chosen=chosen)
        pace, limit = _compute_pace(state, request.window), _find_limit(state, request)
        proposals = {
            BidStrategy.FIXED: _Proposal(state, 1.0, BidStrategy.FIXED),
            BidStrategy.PACER: _Proposal(state, pace, BidStrategy.PACER),
            BidStrategy.FLEET: fleet[index],
            BidStrategy.DQN: dqn[index],
        }
        decisions = {one: _decide_one(proposal, pace, limit) for one, proposal in proposals.items()}
        decision = _add_note(decisions.pop(request.strategy), state, request)
        answers.append(ShadowedAnswer(_remember(state, request.window, decision), decision, decisions))
    return answers


def observe(state: BidState, window: BidWindow) -> BidState:
    """Take in the window that has ended; window 0, or one before the last, begins a day."""
    if window.window == 0 or window.window < state.window:
        return BidState(counts_from_end=counts_from_end(window), pacer=pacer.begin_day(state.pacer))
    if state.window < 0 or window.window == state.window:
        return state  # Begun in the middle of a day, or asked again.
    paced = pacer.observe(
        state.pacer,
        multiplier=window.last_multiplier or state.multiplier or 1.0,
        opportunities=window.opportunities,
        cost=window.window_cost / window.let_through,
    )
    return _changed(observe_window(state, window), pacer=paced)


def _propose_fleet(asked: list[tuple[int, WindowRequest, BidState]], nets: Nets) -> dict[int, _Proposal]:
    with_target = [one for one in asked if one[1].window.target is not None]
    answers: list[FleetAnswer | None] = [None] * len(with_target)
    if with_target and not isinstance(nets.fleet, str):
        features = [
            build_features(state, request.window, money_scale=request.rules.money_scale)
            for _, request, state in with_target
        ]
        answers = list(nets.fleet.run(features, [state.hidden for _, _, state in with_target]))
    found: dict[int, _Proposal] = {}
    for (index, request, state), answer in zip(with_target, answers, strict=True):
        if answer is None:
            found[index] = _Proposal(state, None, str(nets.fleet))
            continue
        strange = state.strange + 1 if answer.beyond >= STRANGE_FEATURES else 0
        is_sound = abs(answer.log_m) <= LOG_SOUND_MAX  # NaN is not.
        after = _changed(state, strange=strange, hidden=answer.hidden if is_sound else b"")
        reason = _find_doubt(request, state)
        if not is_sound:
            reason = "the net answered no number"
        elif strange >= STRANGE_WINDOWS:
            reason = "counters far from all that the net was trained on"
        found[index] = _Proposal(after, None if reason else exp(answer.log_m), reason or BidStrategy.FLEET)
    for index, _, state in asked:
        found.setdefault(index, _Proposal(state, None, "no target"))
    return found


def _propose_dqn(asked: list[tuple[int, WindowRequest, BidState]], nets: Nets) -> dict[int, _Proposal]:
    with_target = [one for one in asked if one[1].window.target is not None]
    actions: list[int | None] = [None] * len(with_target)
    if with_target and not isinstance(nets.dqn, str):
        actions = nets.dqn.choose(
            [build_dqn_state(state, request.window) for _, request, state in with_target]
        )
    found: dict[int, _Proposal] = {}
    for (index, request, state), action in zip(with_target, actions, strict=True):
        if action is None:
            reason = nets.dqn if isinstance(nets.dqn, str) else "the net answered no number"
            found[index] = _Proposal(state, None, reason)
            continue
        chosen = min(DQN_MAX, max(DQN_MIN, state.chosen * ACTIONS[action]))
        reason = _find_doubt(request, state)
        found[index] = _Proposal(
            _changed(state, chosen=chosen), None if reason else chosen, reason or BidStrategy.DQN
        )
    for index, _, state in asked:
        found.setdefault(index, _Proposal(state, None, "no target"))
    return found


def _find_doubt(request: WindowRequest, state: BidState) -> str | None:
    """Why no net should decide, whatever it says."""
    if not request.rules.is_calibrated:
        return "predictions are not calibrated"
    if request.window.window > 0 and state.window >= 0 and state.traffic < OPPORTUNITIES_MIN:
        return f"fewer than {OPPORTUNITIES_MIN} opportunities"
    return None


def _compute_pace(state: BidState, window: BidWindow) -> float:
    return pacer.solve(
        state.pacer,
        remaining=window.remaining,
        share=max(0.0, window.traffic_share),
        left=state.compute_left(window),
        last=window.last_multiplier or state.multiplier,
        has_target=window.target is not None,
    )


def _finish(request: WindowRequest, proposal: _Proposal) -> WindowAnswer:
    """Apply the guard or the fallback, and remember the window."""
    window, state = request.window, proposal.state
    pace = _compute_pace(state, window) if proposal.multiplier is None else 1.0
    limit = _find_limit(state, request) if proposal.reason in _GUARDED else None
    decision = _add_note(_decide_one(proposal, pace, limit), state, request)
    return WindowAnswer(_remember(state, window, decision), decision)


def _decide_one(proposal: _Proposal, pace: float, limit: float | None) -> BidDecision:
    multiplier, reason = proposal.multiplier, proposal.reason
    if multiplier is None:
        return BidDecision(multiplier=min(1.0, pace), reason=FALLBACK + reason)
    if reason not in _GUARDED or limit is None:
        return BidDecision(multiplier=multiplier, reason=reason)
    if multiplier > limit:
        multiplier, reason = limit, "guard"
    return BidDecision(multiplier=multiplier, reason=reason, limit=limit)


def _find_limit(state: BidState, request: WindowRequest) -> float | None:
    if not request.rules.has_guard:
        return None
    return compute_guard(state, request.window, tolerance=request.rules.tolerance)


def _remember(state: BidState, window: BidWindow, decision: BidDecision) -> BidState:
    return _changed(
        state,
        window=window.window,
        multiplier=decision.multiplier,
        share=max(0.0, window.traffic_share),
    )


def _add_note(decision: BidDecision, state: BidState, request: WindowRequest) -> BidDecision:
    is_known = request.rules.is_calibrated and request.window.target is not None
    if not is_known or decision.multiplier < 1.0 - 1e-9 or not _wins_nothing(state, request.window):
        return decision
    return _changed(decision, note=BELOW_MARKET)


def compute_guard(state: BidState, window: BidWindow, *, tolerance: float) -> float:
    if window.target is None or window.window == 0:
        return 1.0
    expected = guard.expect_window(
        target=window.target,
        value=window.value,
        budget=window.budget,
        share=max(window.traffic_share, SHARE_MIN),
        passed=1.0 - state.compute_left(window),
    )
    slack = guard.compute_slack(
        window.target, window.value, window.cost, tolerance=tolerance, budget=window.budget
    )
    return guard.compute_limit(slack, expected)


def _wins_nothing(state: BidState, window: BidWindow) -> bool:
    """Whether a full bid wins few of the opportunities, and what they bring is next to nothing of the budget."""
    passed = 1.0 - state.compute_left(window)
    if passed < BELOW_MARKET_AFTER or state.traffic < OPPORTUNITIES_MIN:
        return False
    worth = (window.target or 0.0) * window.value
    is_little = worth < BELOW_MARKET_SHARE * window.budget * passed
    return is_little and window.wins <= BELOW_MARKET_WINS * window.opportunities
