"""The pure step of a site: whatever order messages come in, it knows and tells its pages as they are."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.ids import SiteId
from adloom.pages.follow.page_table import NO_PAGES, PageEntry, PageTable, build_table
from adloom.pages.model import PAGES_HELD_MAX, PageCategory, compute_expiry
from adloom.pages.site.messages import (
    ChangePages,
    ConfigureSite,
    PageCategoriesClassified,
    PagesListed,
    PagesWithdrawn,
    ReadPages,
    SiteConfig,
    SiteConfigured,
    SiteMessage,
    SlotConfig,
    ToldUpTo,
)
from adloom.pages.site.step import SiteKind, SiteState, make_site, step
from adloom.runtime.actors.actor import Effect, Persist, Publish, Reply
from tests.support.rows import an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SITE = SiteId(an_id(1))
CHANCE = Random(1)  # noqa: S311 - a step takes chance, and this one uses none
CONFIG = SiteConfig(domain="example.com", slots=(SlotConfig("top", 300, 250), SlotConfig("side")))
URLS = [f"example.com/{letter}" for letter in "abcde"]


def a_page(url: str, version: int) -> PageEntry:
    at = NOON + timedelta(minutes=version)
    return PageEntry(url, version, (PageCategory("483", 0.5),), at, compute_expiry(at))


def run(*messages: SiteMessage, state: SiteState | None = None) -> tuple[SiteState, list[Effect]]:
    state = state or make_site(str(SITE), NOON)
    effects: list[Effect] = []
    for message in messages:
        state, made = step(state, message, NOON, CHANCE)
        effects += made
    return state, effects


def told(effects: Iterable[Effect]) -> list[msgspec.Struct]:
    return [effect.message for effect in effects if isinstance(effect, Publish)]


def urls_of(news: Iterable[msgspec.Struct]) -> list[str]:
    return [one.url for one in news if isinstance(one, PageCategoriesClassified)]


def test_a_classified_page_is_told_with_its_categories_and_slots() -> None:
    state, _ = run(ConfigureSite(1, CONFIG))

    _, effects = run(ChangePages((a_page(URLS[0], 3),)), state=state)

    assert told(effects) == [
        PageCategoriesClassified(
            site_id=SITE,
            url=URLS[0],
            version=3,
            categories={"483": 0.5},
            slots=("top", "side"),
            classified_at=NOON + timedelta(minutes=3),
        )
    ]
    assert Persist() in effects
    assert effects[-1] == Reply(ToldUpTo(3))


def test_a_page_is_told_once() -> None:
    change = ChangePages((a_page(URLS[0], 3),))

    _, effects = run(change, change)

    assert urls_of(told(effects)) == [URLS[0]]


def test_a_page_that_waits_for_its_classification_is_not_told() -> None:
    _, effects = run(ChangePages((PageEntry(URLS[0], 1),)))

    assert told(effects) == []


def test_an_older_configuration_is_dropped_and_the_same_one_is_not_told_again() -> None:
    other = msgspec.structs.replace(CONFIG, is_suspended=True)

    state, effects = run(ConfigureSite(5, CONFIG), ConfigureSite(7, CONFIG), ConfigureSite(6, other))

    assert state.config == CONFIG
    assert told(effects) == [SiteConfigured(SITE, 5, CONFIG)]


def test_the_stored_state_has_no_pages() -> None:
    kind = SiteKind()
    state, _ = run(ConfigureSite(1, CONFIG), ReadPages(build_table([a_page(URLS[0], 2)], version=2)))

    again = kind.decode(kind.encode(state), format_number=kind.format)

    assert again == msgspec.structs.replace(state, pages=NO_PAGES)
    assert len(kind.encode(state)) < 300


def test_a_site_that_is_active_again_tells_what_changed_meanwhile_and_which_pages_there_are() -> None:
    state, _ = run(ReadPages(build_table([a_page(URLS[0], 1), a_page(URLS[1], 2)], version=2)))
    stored = msgspec.structs.replace(state, pages=NO_PAGES)

    table = build_table([a_page(URLS[0], 1), a_page(URLS[2], 4)], version=4)
    after, effects = run(ReadPages(table), state=stored)

    assert after.pages == table
    listed, *news = told(effects)
    assert isinstance(listed, PagesListed)
    assert set(listed.urls) == {URLS[0], URLS[2]}
    assert urls_of(news) == [URLS[2]]


def test_pages_that_are_gone_are_told() -> None:
    state, _ = run(ReadPages(build_table([a_page(URLS[0], 1), a_page(URLS[1], 2)], version=2)))

    _, effects = run(ReadPages(build_table([a_page(URLS[0], 1)], version=3)), state=state)

    assert told(effects) == [PagesWithdrawn(SITE, 3, (URLS[1],))]


def test_beyond_the_cap_the_oldest_page_is_evicted_and_told_as_gone() -> None:
    pages = [a_page(f"example.com/{number}", number) for number in range(1, PAGES_HELD_MAX + 1)]
    state, _ = run(ReadPages(build_table(pages, version=PAGES_HELD_MAX)))

    after, effects = run(ChangePages((a_page("example.com/more", PAGES_HELD_MAX + 1),)), state=state)

    assert len(after.pages) == PAGES_HELD_MAX
    gone = [one for one in told(effects) if isinstance(one, PagesWithdrawn)]
    assert [one.urls for one in gone] == [("example.com/1",)]


class Seller:
    """Keeps what it is told, as sellers are to: by version, in whatever order it comes."""

    def __init__(self) -> None:
        self.pages: dict[str, int] = {}
        self.listed_at = 0

    def hear(self, news: Iterable[msgspec.Struct]) -> None:
        for one in news:
            if isinstance(one, PageCategoriesClassified):
                self.pages[one.url] = max(one.version, self.pages.get(one.url, 0))
            elif isinstance(one, PagesWithdrawn):
                self._drop(one.version, keep=set(self.pages) - set(one.urls))
            elif isinstance(one, PagesListed):
                self._drop(one.version, keep=set(one.urls))

    def _drop(self, version: int, *, keep: set[str]) -> None:
        self.pages = {url: at for url, at in self.pages.items() if url in keep or at > version}


actions = st.lists(
    st.tuples(st.sampled_from(URLS), st.sampled_from(["write", "write", "remove", "sleep"])), max_size=25
)


@given(actions, st.randoms(use_true_random=False))
def test_repeated_and_late_messages_and_restarts_lead_to_the_pages_as_they_are(
    done: Sequence[tuple[str, str]], chance: Random
) -> None:
    """The actor is told as a follower would, with repeats and out of order; a seller hears all of it."""
    pages: dict[str, PageEntry] = {}
    state, seller = make_site(str(SITE), NOON), Seller()
    waiting: list[PageEntry] = []

    def take(message: SiteMessage) -> None:
        nonlocal state
        state, effects = run(message, state=state)
        seller.hear(told(effects))

    for version, (url, action) in enumerate(done, start=1):
        if action == "write":
            pages[url] = a_page(url, version)
            waiting.append(pages[url])
        elif action == "remove" and pages.pop(url, None):
            take(ReadPages(build_table(pages.values(), version=version)))
        elif action == "sleep":
            state = msgspec.structs.replace(state, pages=NO_PAGES)
            take(ReadPages(build_table(pages.values(), version=version)))
        if waiting and chance.random() < 0.5:
            take(ChangePages(tuple(chance.sample(waiting, k=len(waiting)))))
    repeated = waiting * 2
    chance.shuffle(repeated)
    for page in repeated:
        take(ChangePages((page,)))

    assert state.pages.entries == pages
    assert seller.pages == {url: page.version for url, page in pages.items()}


def test_a_table_that_was_read_earlier_is_dropped() -> None:
    state, _ = run(ReadPages(build_table([a_page(URLS[0], 5)], version=5)))

    after, effects = run(ReadPages(PageTable(version=3, read_at_version=3)), state=state)

    assert after == state
    assert told(effects) == []
