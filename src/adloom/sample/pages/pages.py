"""The pages of the sample: The Hedgerow, a magazine, and Meadow & Oak, a shop. Their HTML is in `pages.html`."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

import msgspec
from markupsafe import Markup

from adloom.sample.content.articles import (
    ARTICLES,
    DEPARTMENTS,
    PRODUCTS,
    Article,
    Department,
    SampleProduct,
)
from adloom.sample.content.catalog import SITE_BY_KEY, SLOTS, read_data
from adloom.sample.content.pictures import Picture

STYLE_PATH: Final = "/sample/page.css"
TAG_PATH: Final = "/tag.js"
SHOP: Final = "/sample/shop"
SECTIONS: Final = ("Outside", "Walks", "Kitchen", "Reading", "Inside")
NEW_COUNT: Final = 4
ALSO_COUNT: Final = 3
TEMPLATE: Final = re.compile(r"<!--: (\S+) -->\n(.*?)\n(?=<!--:|\Z)", re.DOTALL)
TEMPLATES: Final = {
    name: Markup(text)  # noqa: S704 - our own file
    for name, text in TEMPLATE.findall(read_data("pages.html").decode())
}
# A slot is what any publisher would write; its class reserves the space of its layout, so that nothing moves.
SLOT_HTML: Final = {
    slot.slug: Markup('<div class="slot {}" data-adloom="{}"></div>').format(
        slot.layout.replace("_", "-"), slot.slug
    )
    for slot in SLOTS
}
SLOT_SLUG: Final = re.compile(r'data-adloom="([^"]*)"')
NOTHING: Final = Markup("")
# What a page is about in a sentence, for search engines and our own classifier.
LEADS: Final = {article.path: article.lead for article in ARTICLES}


class SamplePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page and its slots, in the order in which a visitor sees them."""

    path: str
    title: str
    house: str
    body: str

    @property
    def address(self) -> str:
        """Return where the page would be if its publisher existed; readers find it on delivery."""
        return f"https://{SITE_BY_KEY[self.house].domain}{self.path}"

    @property
    def slots(self) -> tuple[str, ...]:
        return tuple(SLOT_SLUG.findall(self.body))

    def render_html(self) -> str:
        tag = Markup('<script async src="{}"></script>').format(TAG_PATH) if self.slots else ""
        icon = Picture("tea", "rust", 64, 64).path
        body = Markup(self.body)  # noqa: S704 - made of our own templates
        return _fill(
            "page",
            title=self.title,
            line=LEADS.get(self.path, self.title),
            address=self.address,
            icon=icon,
            style=STYLE_PATH,
            tag=tag,
            house=self.house,
            body=body,
        )


@cache
def list_sample_pages() -> dict[str, SamplePage]:
    return {page.path: page for page in (*_list_magazine_pages(), *_list_shop_pages())}


def _fill(template: str, **values: object) -> Markup:
    return TEMPLATES[template].format(slot=SLOT_HTML, **values)


def _write_image(picture: Picture, alt: str = "", *, is_first: bool = False) -> Markup:
    """Return an image with its size, so that nothing moves when it arrives."""
    hint = Markup('fetchpriority="high"') if is_first else Markup('loading="lazy"')
    return _fill("image", picture=picture, alt=alt, hint=hint)


def _write_nav(entries: Iterable[tuple[str, str]], current: str | None) -> Markup:
    return NOTHING.join(
        _fill("nav", name=name, path=path, current=Markup(" aria-current=page") if name == current else "")
        for name, path in entries
    )


def _list_magazine_pages() -> Iterable[SamplePage]:
    lead, *others = ARTICLES
    most_read = _fill(
        "hedgerow-most-read",
        items=NOTHING.join(_fill("hedgerow-read", article=article) for article in reversed(ARTICLES)),
    )
    front = _fill(
        "hedgerow-front",
        lead=lead,
        picture=_write_image(lead.make_picture(1200, 675), is_first=True),
        cards=[_write_card(article, level=2) for article in others],
        most_read=most_read,
    )
    yield _make_magazine_page("/sample", "The Hedgerow", front, below=SLOT_HTML["hedgerow-bar"])
    for article in ARTICLES:
        first, *texts = article.text
        paragraphs = [_fill("hedgerow-paragraph", text=text) for text in texts]
        middle = len(texts) // 2
        main = _fill(
            "hedgerow-article",
            article=article,
            picture=_write_image(article.make_picture(1200, 675), is_first=True),
            first=first,
            before=NOTHING.join(paragraphs[:middle]),
            after=NOTHING.join(paragraphs[middle:]),
            most_read=most_read,
            more=NOTHING.join(_write_card(other) for other in ARTICLES if other is not article),
        )
        title, below = f"{article.title} · The Hedgerow", SLOT_HTML["hedgerow-long-read"]
        yield _make_magazine_page(
            article.path, title, main, section=article.section, below=below if article.is_long else NOTHING
        )


def _make_magazine_page(
    path: str, title: str, main: Markup, *, section: str | None = None, below: Markup = NOTHING
) -> SamplePage:
    first = {one: next(article for article in ARTICLES if article.section == one) for one in SECTIONS}
    nav = _write_nav([(one, first[one].path) for one in SECTIONS], section)
    return SamplePage(
        path=path, title=title, house="hedgerow", body=_fill("hedgerow", nav=nav, main=main, below=below)
    )


def _write_card(article: Article, *, level: int = 3) -> Markup:
    return _fill(
        "hedgerow-card", article=article, level=level, picture=_write_image(article.make_picture(600, 400))
    )


def _list_shop_pages() -> Iterable[SamplePage]:
    by_department = {one.key: [it for it in PRODUCTS if it.department == one.key] for one in DEPARTMENTS}
    shelves = [
        _fill(
            "oak-shelf",
            department=one,
            picture=_write_image(by_department[one.key][0].make_picture(600, 400)),
        )
        for one in DEPARTMENTS
    ]
    front = _fill(
        "oak-front",
        new_path=DEPARTMENTS[2].path,
        picture=_write_image(PRODUCTS[6].make_picture(900, 600), "Three folded blankets", is_first=True),
        shelves=NOTHING.join(shelves),
        new=_write_tiles(PRODUCTS[:NEW_COUNT]),
    )
    yield _make_shop_page(SHOP, "Meadow & Oak", front)
    yield _make_shop_page(f"{SHOP}/basket", "Basket · Meadow & Oak", _fill("oak-basket"))
    for department in DEPARTMENTS:
        tiles = _write_tiles(by_department[department.key])
        main = _fill("oak-department", department=department, tiles=tiles)
        title, popup = f"{department.name} · Meadow & Oak", SLOT_HTML["oak-popup"]
        yield _make_shop_page(department.path, title, main, department=department, below=popup)
    for number, product in enumerate(PRODUCTS):
        [department] = [one for one in DEPARTMENTS if one.key == product.department]
        also = [PRODUCTS[(number + step) % len(PRODUCTS)] for step in range(1, ALSO_COUNT + 1)]
        main = _fill(
            "oak-product",
            product=product,
            department=department,
            picture=_write_image(product.make_picture(800, 800), product.name, is_first=True),
            also=_write_tiles(also),
        )
        yield _make_shop_page(product.path, f"{product.name} · Meadow & Oak", main, department=department)


def _make_shop_page(
    path: str, title: str, main: Markup, *, department: Department | None = None, below: Markup = NOTHING
) -> SamplePage:
    nav = _write_nav([(one.name, one.path) for one in DEPARTMENTS], department and department.name)
    return SamplePage(path=path, title=title, house="oak", body=_fill("oak", nav=nav, main=main, below=below))


def _write_tiles(products: Iterable[SampleProduct]) -> Markup:
    return NOTHING.join(
        _fill("oak-tile", product=product, picture=_write_image(product.make_picture(500, 500)))
        for product in products
    )
