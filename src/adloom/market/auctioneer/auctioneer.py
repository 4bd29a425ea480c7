"""An auctioneer: sells the slots of a site's pages, again and again, and writes shortlists.

A page that was classified is auctioned at once, and further changes within a second together. Every five minutes
all pages are, sites apart from each other by a hash. Bids and weights are asked for by messages; what is not
answered in time is left as it was known.
"""

# pure

import zlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, assert_never
from uuid import UUID

import msgspec

from adloom.budgets.messages import CheckClock
from adloom.core.ids import SiteId
from adloom.core.random import Chance
from adloom.market.approval import ApprovalState
from adloom.market.auctioneer.auction import auction_pages, redraw, score_categories
from adloom.market.auctioneer.floors import take_tick, with_floors
from adloom.market.auctioneer.select import CAMPAIGNS_A_SLOT, Ancestors, add_ancestors
from adloom.market.auctioneer.state import (
    ANSWERS_WITHIN,
    CLEAN_EVERY,
    DEBOUNCE,
    PAGES_A_STEP,
    PAGES_MAX,
    REAUCTION_EVERY,
    RETRIES_EMPTY_MAX,
    RETRY_EMPTY_AFTER,
    ROUNDS_ANSWERED,
    AuctioneerMessage,
    AuctioneerState,
    ConfigureAuctions,
    FloorTick,
    HeldQuote,
    LoadFloors,
    LoadShortlists,
    PageForSale,
    PagesClassified,
    Round,
    build_slot_terms,
    hold_bids,
)
from adloom.market.messages import BidAnswer, BidRequest, DemandChanged, DemandVersions, Quote, Quoted
from adloom.market.routing import EVERYWHERE, find_stripe, make_bidder_address, make_ranker_address
from adloom.market.shortlist.model import ApprovalSeen, BannersSeen, PageShortlists, ShortlistsChanged
from adloom.runtime.actors.actor import Effect, Publish, RecordRow, Step, StepResult, Tell, Wake
from adloom.taxonomy.topics import FILLER

NOTHING: Final = frozenset[str]()
FILLER_ONLY: Final = frozenset({FILLER})
# Topics.
SHORTLISTS: Final = "shortlists"
APPROVALS: Final = "approvals"

_changed = msgspec.structs.replace


def make_auctioneer(key: str, now: datetime, *, campaigns_max: int = CAMPAIGNS_A_SLOT) -> AuctioneerState:
    del now
    return AuctioneerState(site_id=SiteId(UUID(key)), campaigns_max=campaigns_max)


def make_step(ancestors: Ancestors) -> Step[AuctioneerState, AuctioneerMessage]:
    """Return the step, given a taxonomy's ancestors, the nearest first."""

    def step(
        state: AuctioneerState, message: AuctioneerMessage, now: datetime, chance: Chance
    ) -> StepResult[AuctioneerState]:
        effects: list[Effect] = []
        state = _receive(state, message, now, chance, ancestors, effects)
        state = _keep_time(state, now, ancestors, effects)
        state = _run(state, now, ancestors, effects)
        effects += _list_notices(state, effects)
        effects.append(Wake(_find_next_at(state, now)))
        return StepResult(state, tuple(effects))

    return step


def _list_notices(state: AuctioneerState, effects: Iterable[Effect]) -> list[Publish]:
    """Return what others should know of the rows that this step records."""
    rows = [effect.row for effect in effects if isinstance(effect, RecordRow)]
    notices: list[Publish] = []
    if any(isinstance(row, PageShortlists) for row in rows):
        notices.append(Publish(SHORTLISTS, ShortlistsChanged(state.site_id, state.version)))
    waiting = sum(isinstance(row, ApprovalSeen) and row.state is ApprovalState.PENDING for row in rows)
    if waiting:
        notices.append(Publish(APPROVALS, BannersSeen(state.site_id, waiting)))
    return notices


def _receive(  # noqa: PLR0913, PLR0917 - a step's own arguments
    state: AuctioneerState,
    message: AuctioneerMessage,
    now: datetime,
    chance: Chance,
    ancestors: Ancestors,
    effects: list[Effect],
) -> AuctioneerState:
    match message:
        case ConfigureAuctions():
            state = _configure(state, message)
        case PagesClassified():
            state = _take_pages(state, message, now, ancestors, effects)
        case LoadShortlists(by_url=by_url, version=version):
            state = _changed(state, shortlists=by_url, version=max(version, state.version))
        case LoadFloors(by_category=floors, tick=tick):
            state = _changed(state, floors=floors, tick=tick)
        case FloorTick():
            state = take_tick(state, message, ancestors, effects)
        case DemandChanged() | DemandVersions():
            state = _note_changed(state, message)
        case BidAnswer():
            state = _take_bids(state, message)
        case Quoted():
            state = _take_quote(state, message, now, chance)
        case CheckClock():
            pass
        case _:
            assert_never(message)
    return state


def _note_changed(state: AuctioneerState, message: DemandChanged | DemandVersions) -> AuctioneerState:
    """Note categories whose bids must be asked for again, and auction their pages."""
    if isinstance(message, DemandChanged):
        changed = {message.category}
    else:
        newest = message.versions
        changed = {one for one, held in state.bids.items() if newest.get(one, 0) > held.version}
        changed -= state.changed
    if not changed:
        return state
    pages = frozenset(url for one in changed for url in state.by_category.get(one, NOTHING))
    return _changed(state, changed=state.changed | changed, due=state.due | pages)


def _configure(state: AuctioneerState, message: ConfigureAuctions) -> AuctioneerState:
    """Take a site's configuration; a round that was asked under another one is given up."""
    known = state.terms
    if known is not None and message.terms.version < known.version:
        return state
    terms = with_floors(message.terms, state.floors)
    is_same = (
        known is not None
        and _changed(known, version=terms.version) == terms
        and state.approvals == message.approvals
    )
    if is_same:
        return state
    return _changed(
        state,
        terms=terms,
        approvals=message.approvals,
        due=frozenset(state.pages),
        round=None,
        asked=(),
    )


def _take_pages(
    state: AuctioneerState,
    message: PagesClassified,
    now: datetime,
    ancestors: Ancestors,
    effects: list[Effect],
) -> AuctioneerState:
    """Take pages of later versions; beyond the bound those that expire first are left out."""
    fresh = {
        page.url: page
        for page in message.pages
        if page.expires_at > now
        and ((known := state.pages.get(page.url)) is None or known.version < page.version)
    }
    listed = {page.url for page in message.pages}
    gone = {url for url in state.pages if url not in listed} if message.is_all else set(message.gone)
    pages = {url: page for url, page in state.pages.items() if url not in gone} | fresh
    if len(pages) > PAGES_MAX:
        kept = sorted(pages.values(), key=lambda page: (page.expires_at, page.url))[-PAGES_MAX:]
        pages = {page.url: page for page in kept}
    return _replace_pages(state, pages, now, ancestors, effects)


def _replace_pages(
    state: AuctioneerState,
    pages: dict[str, PageForSale],
    now: datetime,
    ancestors: Ancestors,
    effects: list[Effect],
) -> AuctioneerState:
    """Replace the pages: auction what is new or changed, and remove the shortlists of what is gone."""
    removed = {url for url in {*state.pages, *state.shortlists} if url not in pages}
    changed = {url for url, page in pages.items() if state.pages.get(url) != page}
    left: dict[str, set[str]] = {}
    joined: dict[str, set[str]] = {}
    for url in (*removed, *changed):
        before, after = (
            NOTHING if page is None else _list_wanted_by(page, ancestors)
            for page in (state.pages.get(url), pages.get(url))
        )
        for category in before - after:
            left.setdefault(category, set()).add(url)
        for category in after - before:
            joined.setdefault(category, set()).add(url)
    by_category = {
        category: (state.by_category.get(category, NOTHING) - left.get(category, NOTHING))
        | joined.get(category, NOTHING)
        for category in left.keys() | joined.keys()
    }
    version = max(state.version + 1, int(now.timestamp() * 1_000_000))
    effects += (
        RecordRow(
            PageShortlists(
                site_id=state.site_id, url=url, version=version, slots=(), updated_at=now, expires_at=now
            )
        )
        for url in sorted(removed.intersection(state.shortlists))
    )
    return _changed(
        state,
        pages=pages,
        by_category={category: urls for category, urls in (state.by_category | by_category).items() if urls},
        due=(state.due | changed) & pages.keys(),
        shortlists={url: slots for url, slots in state.shortlists.items() if url not in removed},
        empty={url: tries for url, tries in state.empty.items() if url not in removed},
        version=version,
    )


def _list_wanted_by(page: PageForSale, ancestors: Ancestors) -> frozenset[str]:
    """Return the categories whose bids a page may have; not by the site's terms, which change without its pages."""
    return add_ancestors(page.categories, ancestors) or FILLER_ONLY


def _take_bids(state: AuctioneerState, answer: BidAnswer) -> AuctioneerState:
    """Take bids; those that come after their round are sold in the next, which asks for them again."""
    terms, questions = state.terms, state.round
    if terms is None or answer.number not in state.asked:
        return state
    if questions is not None and answer.number == questions.number:
        questions = _changed(questions, bids=questions.bids - {answer.category})
    elif (known := state.bids.get(answer.category)) is not None and (
        known.terms_version == terms.version and known.version > answer.version
    ):
        return state
    held = hold_bids(answer, terms_version=terms.version, campaigns_max=state.campaigns_listed)
    return _changed(state, bids={**state.bids, answer.category: held}, round=questions)


def _take_quote(state: AuctioneerState, quoted: Quoted, now: datetime, chance: Chance) -> AuctioneerState:
    """Take what a ranker knows; the weight is drawn anew only where that has changed."""
    known = state.quotes.get(quoted.category, HeldQuote())
    is_everywhere = quoted.site == EVERYWHERE
    quote = (
        _changed(known, everywhere=quoted.counts) if is_everywhere else _changed(known, site=quoted.counts)
    )
    if quote != known or known.asked_at is None:
        quote = redraw(quote, now, chance)
    questions = state.round
    if questions is not None:
        questions = _changed(questions, quotes=questions.quotes - {(quoted.category, quoted.site)})
    return _changed(
        state,
        quotes={**state.quotes, quoted.category: _changed(quote, asked_at=now)},
        round=questions,
    )


def _keep_time(
    state: AuctioneerState, now: datetime, ancestors: Ancestors, effects: list[Effect]
) -> AuctioneerState:
    """Repeat all auctions, retry empty ones and drop expired pages when it is time."""
    if state.ran_at is not None and state.ran_at > now + DEBOUNCE:
        state = _plan_anew(state, now)
    if state.repeat_at is None:
        stagger = zlib.crc32(state.site_id.bytes) % int(REAUCTION_EVERY.total_seconds())
        return _changed(state, repeat_at=now + timedelta(seconds=stagger), clean_at=now + CLEAN_EVERY)
    if now >= state.repeat_at:
        state = _changed(
            state,
            due=frozenset(state.pages),
            changed=frozenset(state.by_category),
            empty={},
            repeat_at=now + REAUCTION_EVERY,
        )
    if state.empty_at is not None and now >= state.empty_at:
        again = {url for url, tries in state.empty.items() if tries <= RETRIES_EMPTY_MAX}
        categories = {one for one, urls in state.by_category.items() if not again.isdisjoint(urls)}
        state = _changed(state, due=state.due | again, changed=state.changed | categories, empty_at=None)
    if state.clean_at is not None and now >= state.clean_at:
        pages = {url: page for url, page in state.pages.items() if page.expires_at > now}
        if len(pages) < len(state.pages):
            state = _replace_pages(state, pages, now, ancestors, effects)
        state = _changed(state, clean_at=now + CLEAN_EVERY)
    return state


def _plan_anew(state: AuctioneerState, now: datetime) -> AuctioneerState:
    """Plan by a clock that was set back: else nothing would be sold until it is as late again."""
    under_way = state.round
    return _changed(
        state,
        ran_at=None,
        repeat_at=now,
        clean_at=now,
        empty_at=None if state.empty_at is None else now,
        quotes={category: _changed(quote, asked_at=None) for category, quote in state.quotes.items()},
        round=None if under_way is None else _changed(under_way, until=now),
    )


def _is_selling(state: AuctioneerState) -> bool:
    return state.terms is not None and bool(state.terms.slots) and not state.terms.is_suspended


def _run(
    state: AuctioneerState, now: datetime, ancestors: Ancestors, effects: list[Effect]
) -> AuctioneerState:
    """Begin a round where pages are due, and auction them once its questions are answered or time is up."""
    if not _is_selling(state):
        return state
    if state.round is None and state.due and (state.ran_at is None or now >= state.ran_at + DEBOUNCE):
        state = _ask(state, now, ancestors, effects)
    under_way = state.round
    if under_way is None or not under_way.is_ready(now):
        return state
    if under_way.bids:  # Bidders that did not answer are asked again.
        pages = frozenset(url for one in under_way.bids for url in state.by_category.get(one, NOTHING))
        state = _changed(state, changed=state.changed | under_way.bids, due=state.due | pages)
        under_way = _changed(under_way, bids=NOTHING)
    urls, rest = under_way.urls[:PAGES_A_STEP], under_way.urls[PAGES_A_STEP:]
    state = auction_pages(state, urls, now, ancestors, effects)
    empty_at = state.empty_at
    if empty_at is None and any(tries <= RETRIES_EMPTY_MAX for tries in state.empty.values()):
        empty_at = now + RETRY_EMPTY_AFTER
    return _changed(
        state,
        empty_at=empty_at,
        round=_changed(under_way, urls=rest) if rest else None,
        ran_at=state.ran_at if rest else now,
    )


def _ask(
    state: AuctioneerState, now: datetime, ancestors: Ancestors, effects: list[Effect]
) -> AuctioneerState:
    """Begin a round with all pages that are due: ask the bidders and rankers of their categories."""
    terms = state.terms
    assert terms is not None
    categories = {one for url in state.due for one in score_categories(state, state.pages[url], ancestors)}
    bids = {
        category
        for category in categories
        if category in state.changed
        or (held := state.bids.get(category)) is None
        or held.terms_version != terms.version
    }
    oldest = now - REAUCTION_EVERY
    own = {one for url in state.due for one, _ in state.pages[url].categories}
    quotes = {
        category
        for category in own
        if (asked_at := state.quotes.get(category, HeldQuote()).asked_at) is None or asked_at <= oldest
    }
    stripe, site = find_stripe(state.site_id), str(state.site_id)
    # No answer to a question of before a restart is taken for one to this.
    number = int(now.timestamp() * 1_000_000) + state.rounds
    effects += (
        Tell(
            make_bidder_address(category, stripe),
            BidRequest(state.site_id, number, build_slot_terms(terms, state.approvals, category)),
        )
        for category in sorted(bids)
    )
    asked = frozenset((category, where) for category in quotes for where in (site, EVERYWHERE))
    effects += (Tell(make_ranker_address(*one), Quote(state.site_id)) for one in sorted(asked))
    return _changed(
        state,
        rounds=state.rounds + 1,
        asked=(*state.asked, number)[-ROUNDS_ANSWERED:],
        due=NOTHING,
        changed=state.changed - bids,
        round=Round(number, now + ANSWERS_WITHIN, tuple(sorted(state.due)), frozenset(bids), asked),
    )


def _find_next_at(state: AuctioneerState, now: datetime) -> datetime | None:
    times = [at for at in (state.repeat_at, state.clean_at, state.empty_at) if at is not None]
    if _is_selling(state):
        if state.round is not None:
            times.append(now if state.round.is_ready(now) else state.round.until)
        elif state.due:
            times.append(now if state.ran_at is None else max(now, state.ran_at + DEBOUNCE))
    return min(times, default=None)
