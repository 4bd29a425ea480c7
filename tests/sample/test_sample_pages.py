"""The pages of the sample: valid links, real slots, no external content, and only while the sample is loaded."""

import re
from itertools import pairwise
from urllib.parse import urlsplit

import pytest
from markupsafe import Markup

from adloom.pages.model import CATEGORIES_MAX
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastRoutes
from adloom.sample.content.articles import ARTICLES, Article
from adloom.sample.content.catalog import BANNERS, MAGAZINE, SITE_BY_KEY, SITES, SLOTS, read_data
from adloom.sample.content.document import find_phone_picture, find_picture
from adloom.sample.content.pictures import FREE_PATH
from adloom.sample.pages.pages import TAG_PATH, list_sample_pages
from adloom.sample.pages.routes import build_sample_routes
from adloom.sample.visitors.visits import SIGHTS
from adloom.taxonomy.iab import load_content
from tests.support.for_each import for_each

PAGES = list_sample_pages()
STYLE = read_data("page.css").decode()
ADDRESS = re.compile(r'(?:href|src)="([^"]*)"')
SLOT = re.compile(r'data-adloom="([^"]*)"')


LOADED_ROUTES = FastRoutes(build_sample_routes(lambda: True))
REMOVED_ROUTES = FastRoutes(build_sample_routes(lambda: False))


def answer_of(path: str, *, is_loaded: bool = True) -> FastAnswer:
    route = (LOADED_ROUTES if is_loaded else REMOVED_ROUTES).find(b"GET", path.encode())
    assert route is not None, path
    answer = route.handler(FastRequest(method=b"GET", path=path.encode()))
    assert isinstance(answer, FastAnswer)
    return answer


def is_ok(path: str) -> bool:
    return answer_of(path).head.startswith(b"HTTP/1.1 200 ")


@for_each("path", PAGES)
def test_every_link_of_a_page_leads_to_a_page(path: str) -> None:
    addresses = set(ADDRESS.findall(answer_of(path).body.decode()))
    addresses -= {TAG_PATH, "#main", PAGES[path].address}

    assert [address for address in addresses if urlsplit(address).netloc] == []
    assert [address for address in addresses if not is_ok(address)] == []


@for_each("path", PAGES)
def test_a_page_names_its_address_on_the_domain_of_its_site(path: str) -> None:
    domains = [site.domain for site in SITES if PAGES[path].address == f"https://{site.domain}{path}"]

    assert len(domains) == 1
    assert f'<link rel="canonical" href="{PAGES[path].address}">' in PAGES[path].render_html()


def test_a_crawl_of_the_magazine_begins_at_its_front_page() -> None:
    assert SITE_BY_KEY[MAGAZINE].crawl["seedUrl"] == PAGES["/sample"].address


@pytest.mark.parametrize("article", ARTICLES, ids=lambda article: article.key)
def test_an_article_is_described_by_its_lead(article: Article) -> None:
    description = Markup('<meta name="description" content="{}">').format(article.lead)

    assert description in PAGES[article.path].render_html()


@pytest.mark.parametrize("article", ARTICLES, ids=lambda article: article.key)
def test_an_article_is_about_categories_of_the_taxonomy(article: Article) -> None:
    ids = [category.id for category in article.categories]

    assert 1 <= len(ids) <= CATEGORIES_MAX
    assert all(one in load_content() for one in ids)
    assert all(0 < category.confidence <= 1 for category in article.categories)


@for_each("path", PAGES)
def test_a_page_has_the_tag_once_and_its_declared_slots(path: str) -> None:
    html = PAGES[path].render_html()

    assert tuple(sorted(SLOT.findall(html))) == tuple(sorted(PAGES[path].slots))
    assert html.count(f'<script async src="{TAG_PATH}"></script>') == bool(PAGES[path].slots)
    assert html.count("<script") == bool(PAGES[path].slots)


@for_each("path", PAGES)
def test_a_page_has_one_heading_a_language_and_the_size_of_every_picture(path: str) -> None:
    html = PAGES[path].render_html()

    levels = [int(level) for level in re.findall(r"<h([1-6])", html)]
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(after <= before + 1 for before, after in pairwise(levels)), "no level is left out"
    assert '<html lang="en">' in html
    pictures = re.findall(r"<img [^>]*>", html)
    assert all(re.search(r'width="\d+" height="\d+" alt="', picture) for picture in pictures)


def test_every_slot_but_those_of_the_app_is_on_a_page() -> None:
    on_pages = {slug for page in PAGES.values() for slug in page.slots}

    assert on_pages == {slot.slug for slot in SLOTS if slot.is_active and slot.auction_type is None}


def test_every_inline_layout_has_an_aspect_ratio() -> None:
    overlays = {"popup", "interstitial", "sticky_bar"}

    for layout in {slot.layout for slot in SLOTS} - overlays:
        assert re.search(rf"\.{layout.replace('_', '-')}\b[^}}]*aspect-ratio", STYLE), layout


def test_simulated_visitors_request_the_slots_of_the_pages() -> None:
    opened = {sight.path: sight.slots for sight, _ in SIGHTS if sight.slots}

    assert opened == {path: page.slots for path, page in PAGES.items() if page.slots}


def test_the_pictures_and_the_page_of_every_banner_exist() -> None:
    for creative in BANNERS:
        shown = (find_picture(creative), find_phone_picture(creative))
        assert all(is_ok(picture.path) for picture in shown if picture)
        assert is_ok(creative.page)


def test_the_free_placement_invites_a_first_ad() -> None:
    assert b"Your first ad" in answer_of(FREE_PATH).body


def test_an_unknown_picture_is_a_404() -> None:
    assert answer_of("/sample/pictures/tea-rust-99999x99999.svg").head.startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize(
    "path", ["/sample", "/sample/shop", "/sample/page.css", find_picture(BANNERS[0]).path]
)
def test_every_path_is_a_404_without_the_sample(path: str) -> None:
    assert answer_of(path, is_loaded=False).head.startswith(b"HTTP/1.1 404 ")
