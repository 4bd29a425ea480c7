"""Which candidates fill a placement's slots: a pure function of the index, the request and the moment.

Blocks hold candidates in the order in which they fill slots. A block's bitmap of available candidates is
narrowed to those that the request matches; the search ends as soon as the slots are filled.
"""

# pure

from collections.abc import Collection, Iterable, Iterator, Sequence

from adloom.serving.index.index import Candidate, IndexedPlacement
from adloom.targeting.context import Context


def decide(placement: IndexedPlacement, context: Context, available: Sequence[int]) -> list[Candidate]:
    """Fill the slots: primaries first, then fallbacks; evergreens only if there is nothing else."""
    return dedupe_banners(iter_eligible(placement, context, available), at_most=placement.slots_max)


def dedupe_banners(candidates: Iterable[Candidate], *, at_most: int) -> list[Candidate]:
    """Drop a banner's second campaign, and stop at as many as can be used."""
    found: dict[int, Candidate] = {}
    for one in candidates:
        if found.setdefault(one.banner_key, one) is one and len(found) == at_most:
            break
    return list(found.values())


def iter_eligible(  # noqa: PLR0913 - all that may exclude a candidate
    placement: IndexedPlacement,
    context: Context,
    available: Sequence[int],
    *,
    has_evergreens: bool = True,
    without: Collection[int] = (),
    left_out: Collection[int] = (),
) -> Iterator[Candidate]:
    """Yield the candidates that may serve in fill order; `available` has a bitmap per block.

    `without` has banners that are not shown, `left_out` campaigns that take no part at all.
    """
    is_empty = has_evergreens
    evergreens_from = placement.primary_blocks + placement.fallback_blocks
    for number, block in enumerate(placement.blocks):
        if number == evergreens_from and not is_empty:
            return
        mask = available[number]
        if not mask:
            continue
        mask = block.targeting.find_eligible(context, mask)
        while mask:
            lowest = mask & -mask
            mask ^= lowest
            candidate = block.candidates[lowest.bit_length() - 1]
            if without and candidate.banner_key in without:
                continue
            if left_out and candidate.campaign_key in left_out:
                continue
            is_empty = False
            yield candidate
