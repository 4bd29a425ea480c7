"""Which candidates fill a placement's slots: a pure function of the index, the request and the moment.

Candidates stand in the order in which they fill slots, in blocks. A block's bitmap of who may serve
now is narrowed to those whom the request is for; as soon as the slots are filled nobody looks further.
"""

# pure

from collections.abc import Iterator, Sequence
from itertools import islice

from adloom.serving.index.index import Candidate, IndexedPlacement
from adloom.targeting.context import Context


def decide(placement: IndexedPlacement, context: Context, available: Sequence[int]) -> list[Candidate]:
    """Fill the slots: primaries first, then fallbacks; where there is nothing at all, evergreens."""
    return list(islice(iter_eligible(placement, context, available), placement.slots_max))


def iter_eligible(
    placement: IndexedPlacement, context: Context, available: Sequence[int]
) -> Iterator[Candidate]:
    """List who may serve, the first to fill a slot first; `available` has a bitmap for each block."""
    is_empty = True
    evergreens_from = placement.primary_blocks + placement.fallback_blocks
    for number, block in enumerate(placement.blocks):
        if number == evergreens_from and not is_empty:
            return
        mask = available[number]
        if not mask:
            continue
        mask = block.targeting.find_eligible(context, mask)
        while mask:
            is_empty = False
            lowest = mask & -mask
            yield block.candidates[lowest.bit_length() - 1]
            mask ^= lowest
