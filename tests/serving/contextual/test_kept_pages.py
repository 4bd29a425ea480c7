"""What a delivery process keeps of pages that were asked for never outlives what it was made from."""

import json
from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adloom.market.shortlist.table import ShortlistTable
from adloom.pages.follow.page_table import NO_PAGES
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from adloom.serving.contextual.api import SlotRoutes
from tests.support.contextual import FakePages, FakeShortlists, make_slot_routes
from tests.support.contextual_site import FOOD, SITE, TENNIS, Site, a_creative

QUERY = b"slot=top&url=https%3A%2F%2Fexample.com%2Fa"
BODY = json.dumps({"url": "https://example.com/a", "slots": ["top", "side"]}).encode()
PAGE = "example.com/a"


class ChangingSite(Site):
    """A site that changes while a process goes on."""

    def __init__(self) -> None:
        super().__init__(a_creative(1), a_creative(2, cpm=3))
        self.all = self.creatives
        self.pages, self.shortlists = FakePages(), FakeShortlists()
        self.current = self.index()
        self.renew()
        self.kept = self.build()

    def build(self) -> SlotRoutes:
        return make_slot_routes(
            lambda: self.current,
            self.pages,
            shortlists=self.shortlists,
            clock=self.clock,
            states=self.states,
        )

    def renew(self) -> None:
        """Have page and shortlist come anew."""
        self.pages.tables[SITE] = NO_PAGES.with_changes([self.page()])
        self.shortlists.tables = {SITE: ShortlistTable(version=7, pages={PAGE: self.listed()})}

    def change(self, what: str) -> None:
        if what == "time":
            self.clock.advance(timedelta(hours=20))
        elif what == "subject":
            self.categories = (FOOD,) if self.categories == (TENNIS,) else (TENNIS,)
            self.pages.tables[SITE] = NO_PAGES.with_changes([self.page()])
        elif what == "list":
            self.creatives = self.all[1:] if self.creatives == self.all else self.all
            self.shortlists.tables = {SITE: ShortlistTable(version=8, pages={PAGE: self.listed()})}
        elif what == "campaigns":
            self.creatives = self.all[:1] if self.creatives == self.all else self.all
            self.current = self.index()
        elif what == "suspension":
            self.site["is_suspended"] = not self.site.get("is_suspended", False)
            self.current = self.index()
        else:
            self.renew()


def list_answers(routes: SlotRoutes) -> list[Any]:
    """Return which ads a process may show, or why it shows none."""
    one = routes.serve(FastRequest(b"GET", b"/v1/serve", query=QUERY))
    page = routes.serve_batch(FastRequest(b"POST", b"/v1/serve/batch", body=BODY))
    assert isinstance(one, FastAnswer)
    assert isinstance(page, FastAnswer)
    answer = msgspec.json.decode(page.body)
    slots = sorted(slot["bannerId"] if slot else "" for slot in answer["slots"].values())
    return [one.head, bool(one.body), answer["page"], answer["reclassifyInMs"], slots, routes.unfilled]


@given(st.lists(st.sampled_from(["time", "subject", "list", "campaigns", "suspension", "page"]), max_size=8))
def test_a_process_that_went_on_answers_as_one_that_has_just_started(changes: list[str]) -> None:
    site = ChangingSite()
    for what in ["page", *changes]:
        site.change(what)
        for _ in range(2):
            site.kept.unfilled.clear()
            assert list_answers(site.kept) == list_answers(site.build())


def test_what_says_something_of_a_reader_is_not_kept() -> None:
    site = ChangingSite()
    bodies = [
        {"userId": "0192e4a0-0000-7000-8000-000000000001"},
        {"context": {"country": "DE"}},
        {},
    ]
    for more in bodies:
        body = json.dumps({"url": "https://example.com/a", "slots": ["top"], **more}).encode()
        for _ in range(2):
            answer = site.kept.serve_batch(FastRequest(b"POST", b"/v1/serve/batch", body=body))
            assert isinstance(answer, FastAnswer)
            has_user = b"?u=" in answer.body
            assert has_user == ("userId" in more)
