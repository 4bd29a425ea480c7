"""What becomes of every creative that wants a slot of a page: the same checks as in delivery, one by one."""

# pure

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.auction.creative_choice import ChoiceMethod, ChoicePolicy
from adloom.core.ids import BannerId, CampaignId
from adloom.core.money import Micros
from adloom.core.random import Chance
from adloom.explain.reasons import CandidateOutcome
from adloom.market.results.window import NO_RESULTS, SiteResults
from adloom.market.shortlist.model import ShortlistCandidate
from adloom.serving.contextual.decide import (
    BUDGET,
    CAMPAIGN_INACTIVE,
    FREQUENCY,
    PACING,
    TARGETING,
    Eligible,
    SlotRules,
    draw_eligible,
    find_removal,
    price_winner,
)
from adloom.serving.eligibility.schedule_mask import find_open_get_state
from adloom.serving.index.compile import Interner, compile_creatives
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.index import Candidate, IndexedPlacement
from adloom.serving.index.steps import run_steps
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX
from adloom.targeting.context import Context
from adloom.taxonomy.topics import FILLER

NOT_SHORTLISTED: Final = "not_shortlisted"


class AskedSlot(msgspec.Struct, frozen=True, kw_only=True):
    """A slot of a page: its rules, and the page's categories and all above them with their scores, the best first."""

    rules: SlotRules
    scores: Mapping[str, float]
    context: Context
    now: datetime
    budgets: Mapping[int, str]  # By campaign, the budget that it lacks, or the cap that it has reached.
    seen_enough: Collection[int] = frozenset()  # Banners by key, as often as their frequency caps allow.
    obstacle: str | None = None  # What keeps all ads from the page.
    floors: Mapping[str, Micros] = {}  # By category, where they move.
    # By banner and campaign, what delivery chooses from; None where the page was not auctioned yet.
    listed: Mapping[tuple[UUID, UUID], ShortlistCandidate] | None = None
    results: SiteResults = NO_RESULTS
    method: ChoiceMethod = ChoiceMethod.INFORMED


class CreativeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one creative."""

    banner_id: BannerId
    campaign_id: CampaignId
    title: str
    outcome: CandidateOutcome
    removed_by: str | None = None
    category: str | None
    category_score: float
    max_cpm: Micros | None  # None where the caller may not see it.
    sampled_ctr: float | None = None
    score: float | None = None
    price_cpm: Micros | None = None


def explain_slot(
    asked: AskedSlot, campaigns: Iterable[Sequence[CreativeRow]], chance: Chance
) -> list[CreativeVerdict]:
    """Judge all creatives: the winner first, then those that lost, then those that were removed."""
    shared = Interner()
    eligible: list[tuple[CreativeRow, Eligible]] = []
    removed: list[CreativeVerdict] = []
    for rows in campaigns:
        own = run_steps(compile_creatives(rows[0].assignment.campaign_id, rows, shared))
        for row in rows:
            candidate = _make_candidate(row, asked)
            found = _judge(asked, own, row, candidate)
            if isinstance(found, str):
                removed.append(_make_verdict(row, candidate, CandidateOutcome.REMOVED, removed_by=found))
            else:
                eligible.append((row, found))
    return [*_rank(asked, eligible, chance), *removed]


def _judge(
    asked: AskedSlot, own: IndexedPlacement, row: CreativeRow, candidate: ShortlistCandidate
) -> Eligible | str:
    """Return a creative that may be shown, or the name of what removes it."""
    creative = own.creatives_by_banner.get(candidate.banner_id)
    if creative is None:
        return CAMPAIGN_INACTIVE
    number, place = divmod(creative.position, BLOCK_CANDIDATES_MAX)
    reason = (
        asked.obstacle
        or find_removal(candidate, creative, asked.scores.keys(), asked.rules)
        or _find_shut(own.blocks[number].candidates[place], asked.now)
    )
    if reason is not None:
        return reason
    if not own.blocks[number].targeting.find_eligible(asked.context, 1 << place):
        reason = TARGETING
    elif creative.banner_key in asked.seen_enough:
        reason = FREQUENCY
    if reason is not None:
        return reason
    missing = asked.budgets.get(row.assignment.campaign_key)
    if missing is not None:
        return PACING if missing == PACING else BUDGET
    if asked.listed is not None and (candidate.banner_id, candidate.campaign_id) not in asked.listed:
        return NOT_SHORTLISTED
    return Eligible(candidate, creative)


def _find_shut(candidate: Candidate, now: datetime) -> str | None:
    is_open = candidate.timing is None or find_open_get_state(candidate.timing, now=now)[0]
    return None if is_open else CAMPAIGN_INACTIVE


def _rank(
    asked: AskedSlot, eligible: Sequence[tuple[CreativeRow, Eligible]], chance: Chance
) -> list[CreativeVerdict]:
    if not eligible:
        return []
    ones = [one for _, one in eligible]
    results = asked.results
    policy = ChoicePolicy(
        bid_weight=asked.rules.bid_weight, method=asked.method, click_rate=results.click_rate
    )
    drawn = draw_eligible(ones, policy, results.banners, chance)
    verdicts: list[CreativeVerdict] = []
    for place, position in enumerate(drawn.iter_best()):
        row, one = eligible[position]
        verdict = _make_verdict(row, one.candidate, CandidateOutcome.LOST if place else CandidateOutcome.WON)
        price = None if place else price_winner(position, drawn.scores, ones, asked.rules)
        verdicts.append(
            msgspec.structs.replace(
                verdict,
                sampled_ctr=drawn.engagements[position],
                score=drawn.scores[position],
                price_cpm=price,
            )
        )
    return verdicts


def find_throttle(verdicts: Sequence[CreativeVerdict], throttles: Mapping[CampaignId, float]) -> float:
    """Return the share that pacing holds back now, of the campaigns that nothing else keeps from the slot.

    One that has reached its line is held back whole, the others by the share of their offers that is left out.
    """
    held_back = {one.campaign_id for one in verdicts if one.removed_by == PACING}
    eligible = {one.campaign_id for one in verdicts if one.outcome is not CandidateOutcome.REMOVED}
    campaigns = held_back | eligible
    shares = [1.0 if one in held_back else throttles.get(one, 0.0) for one in campaigns]
    return round(sum(shares) / len(shares), 4) if shares else 0.0


def _make_candidate(row: CreativeRow, asked: AskedSlot) -> ShortlistCandidate:
    """Return a creative as a candidate: as it is on the shortlist, or under the category that fits the page best."""
    one, terms, scores = row.assignment, row.terms, asked.scores
    listed = (asked.listed or {}).get((one.banner_id, one.campaign_id))
    if listed is not None:
        return msgspec.structs.replace(listed, cpm=one.bid or Micros(0))
    category = next((category for category in scores if category in terms.categories), None)
    return ShortlistCandidate(
        banner_id=one.banner_id,
        campaign_id=one.campaign_id,
        advertiser_id=one.advertiser_id,
        category=category,
        category_score=0.0 if category is None else scores[category],
        cpm=one.bid or Micros(0),
        floor=asked.floors.get(category or FILLER, Micros(0)),
    )


def _make_verdict(
    row: CreativeRow,
    candidate: ShortlistCandidate,
    outcome: CandidateOutcome,
    *,
    removed_by: str | None = None,
) -> CreativeVerdict:
    return CreativeVerdict(
        banner_id=candidate.banner_id,
        campaign_id=candidate.campaign_id,
        title=row.assignment.title,
        outcome=outcome,
        removed_by=removed_by,
        category=candidate.category,
        category_score=candidate.category_score,
        max_cpm=candidate.cpm,
    )
