"""`adloom bids`: a strategy on standard input and output, one JSON object a line, so that anybody can try it on their logs."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import msgspec

from adloom.bidding.decide import WindowRequest, decide
from adloom.bidding.ports import Nets
from adloom.bidding.state import BidState
from adloom.bidding.window import Amount, BidRules, BidStrategy, BidWindow

CAMPAIGNS_MAX: Final = 200_000  # Beyond this the campaign that was asked for least lately begins anew.
_PATH = re.compile(r" - at `\$\.(\w+)")
_MISSING = re.compile(r"missing required field `(\w+)`")


class BidLine(BidWindow, frozen=True, kw_only=True, rename="camel"):
    """A line of the input."""

    campaign: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    # Counted ones, of the day so far and of the last window; where there are some, they are the value.
    conversions: Amount = 0.0
    window_conversions: Amount = 0.0

    def with_counted_value(self) -> "BidLine":
        if not self.conversions:
            return self
        return msgspec.structs.replace(self, value=self.conversions, window_value=self.window_conversions)


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    campaign: str
    multiplier: float
    reason: str


class LineError(msgspec.Struct, frozen=True, kw_only=True):
    """Which field of a line is wrong, and what to change."""

    field: str | None
    message: str


class _Refusal(msgspec.Struct, frozen=True, kw_only=True):
    campaign: str | None
    error: LineError


_decode = msgspec.json.Decoder(BidLine).decode
_encode = msgspec.json.Encoder().encode


def answer_lines(
    lines: Iterable[bytes], strategy: BidStrategy, rules: BidRules, nets: Nets
) -> Iterator[bytes]:
    """Answer each line; a bad one is answered with an error, and changes nothing."""
    states: OrderedDict[str, BidState] = OrderedDict()
    for line in lines:
        try:
            asked = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            yield _encode(_Refusal(campaign=_find_campaign(line), error=explain(str(error)))) + b"\n"
            continue
        if asked.window >= asked.windows:
            wrong = LineError(
                field="window", message=f"window must be less than windows, which is {asked.windows}"
            )
            yield _encode(_Refusal(campaign=asked.campaign, error=wrong)) + b"\n"
            continue
        state = states.pop(asked.campaign, None) or BidState()
        answer = decide(WindowRequest(strategy, state, asked.with_counted_value(), rules), nets)
        states[asked.campaign] = answer.state
        if len(states) > CAMPAIGNS_MAX:
            states.popitem(last=False)
        decision = answer.decision
        yield (
            _encode(_Answer(campaign=asked.campaign, multiplier=decision.multiplier, reason=decision.reason))
            + b"\n"
        )


def explain(message: str) -> LineError:
    """Name the field of a decoder's complaint."""
    if missing := _MISSING.search(message):
        return LineError(field=missing[1], message=f"{missing[1]} is missing")
    if found := _PATH.search(message):
        said = message[: found.start()]
        return LineError(field=found[1], message=f"{found[1]}: {said[0].lower()}{said[1:]}")
    return LineError(field=None, message=f"not a JSON object of a campaign's window: {message}")


def _find_campaign(line: bytes) -> str | None:
    """Return the campaign of a bad line, as far as it can be read."""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    match found:
        case {"campaign": str(name)}:
            return name
        case _:
            return None
