"""The table of a site's pages: whatever order messages come in, it ends up as the pages are."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adloom.pages.follow.page_table import (
    NO_PAGES,
    PageEntry,
    PageState,
    PageTable,
    build_table,
    make_age_key,
)
from adloom.pages.model import PageCategory, compute_expiry

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
URLS = [f"example.com/{letter}" for letter in "abcdefgh"]


def a_page(
    url: str = URLS[0], version: int = 1, *, at: datetime = NOON, is_classified: bool = True
) -> PageEntry:
    if not is_classified:
        return PageEntry(url, version)
    return PageEntry(url, version, (PageCategory("483", 0.9),), at, compute_expiry(at))


def test_a_page_is_known_until_it_expires_and_then_stale() -> None:
    table = NO_PAGES.with_changes([a_page()])

    assert table.find_state(URLS[0], NOON + timedelta(hours=47)) is PageState.KNOWN
    assert table.find_state(URLS[0], NOON + timedelta(hours=48)) is PageState.STALE
    assert table.find_state(URLS[1], NOON) is PageState.UNKNOWN


def test_an_older_version_of_a_page_is_dropped() -> None:
    newer, older = a_page(version=7), a_page(version=6, at=NOON - timedelta(hours=1))

    table = NO_PAGES.with_changes([newer]).with_changes([older])

    assert table.entries == {URLS[0]: newer}
    assert table.version == 7


def test_a_page_that_lost_its_classification_is_unknown() -> None:
    table = NO_PAGES.with_changes([a_page(version=1)]).with_changes([a_page(version=2, is_classified=False)])

    assert table.find_state(URLS[0], NOON) is PageState.UNKNOWN


def test_a_late_message_does_not_bring_a_removed_page_back() -> None:
    read_after_the_removal = build_table([], version=5)

    assert read_after_the_removal.with_changes([a_page(version=4)]).entries == {}


def test_a_table_is_never_changed_in_place() -> None:
    before = NO_PAGES.with_changes([a_page(version=1)])
    entries = dict(before.entries)

    before.with_changes([a_page(version=2), a_page(URLS[1], version=3)])

    assert before.entries == entries


classified_at = st.integers(0, 50).map(lambda minutes: NOON + timedelta(minutes=minutes))
pages = st.builds(a_page, st.sampled_from(URLS), at=classified_at)


@given(st.lists(pages, max_size=40), st.integers(1, 5))
def test_there_are_never_more_pages_than_the_bound_and_the_newest_stay(
    written: Sequence[PageEntry], pages_max: int
) -> None:
    numbered = [msgspec.structs.replace(page, version=number) for number, page in enumerate(written, 1)]

    table = build_table(numbered, version=len(numbered), pages_max=pages_max)

    latest = {page.url: page for page in numbered}
    newest = sorted(latest.values(), key=make_age_key)[-pages_max:]
    assert list(table.entries.values()) == newest


@given(st.lists(pages, max_size=40), st.integers(1, 5))
def test_pages_that_come_one_by_one_are_ordered_and_bounded_as_those_that_come_together(
    written: Sequence[PageEntry], pages_max: int
) -> None:
    """Where each page is classified later than the one before, as it is."""
    numbered = [
        msgspec.structs.replace(page, version=number, classified_at=NOON + timedelta(minutes=number))
        for number, page in enumerate(written, 1)
    ]

    table = NO_PAGES
    for page in numbered:
        table = table.with_changes([page], pages_max=pages_max)

    together = build_table(
        {page.url: page for page in numbered}.values(), version=len(numbered), pages_max=pages_max
    )
    assert list(table.entries.items()) == list(together.entries.items())


class Writes(msgspec.Struct):
    """What was written to a table of the database: upserts with growing versions and times, and removals."""

    pages: dict[str, PageEntry] = {}
    told: list[PageEntry] = []  # Since all pages were last read.
    table: PageTable = NO_PAGES
    version: int = 0

    def write(self, url: str, *, is_classified: bool) -> None:
        self.version += 1
        at = NOON + timedelta(minutes=self.version)
        page = a_page(url, self.version, at=at, is_classified=is_classified)
        self.pages[url] = page
        self.told.append(page)

    def remove(self, url: str) -> None:
        if self.pages.pop(url, None) is not None:
            self.version += 1
            self.table = build_table(self.pages.values(), version=self.version)


actions = st.lists(
    st.tuples(st.sampled_from(URLS), st.sampled_from(["write", "write", "unclassify", "remove"]))
)


@given(actions, st.randoms(use_true_random=False))
def test_repeated_and_reordered_messages_lead_to_the_pages_as_they_are(
    done: Sequence[tuple[str, str]], chance: Random
) -> None:
    """All messages are repeated at the end, those from before a removal too."""
    world = Writes(pages={}, told=[])
    for url, action in done:
        if action == "remove":
            world.remove(url)
        else:
            world.write(url, is_classified=action == "write")
    messages = world.told * 2
    chance.shuffle(messages)

    table = world.table
    for message in messages:
        table = table.with_changes([message])

    assert table.entries == world.pages
