"""Meadow & Oak: a shop front, its departments, a page for each product, and an empty basket."""

from html import escape
from typing import Final

from adloom.sample.content.articles import DEPARTMENTS, PRODUCTS, Department, SampleProduct
from adloom.sample.pages.markup import SamplePage, image, slot

HOUSE: Final = "oak"
FRONT: Final = "/sample/shop"
BASKET: Final = "/sample/shop/basket"
FRONT_SLOTS: Final = ("oak-pair", "oak-grid")
DEPARTMENT_SLOTS: Final = ("oak-popup",)
PRODUCT_SLOTS: Final = ("oak-product",)
DEPARTMENT_BY_KEY: Final = {department.key: department for department in DEPARTMENTS}
NEW_COUNT: Final = 4
ALSO_COUNT: Final = 3
FOOTER: Final = """
<footer><div class="page"><p><b>Meadow &amp; Oak</b> sells nothing: it is part of the sample of Adloom, and so is
<a href="/sample">The Hedgerow</a>, where it advertises. What brought you here is in the address, and nothing about you.</p>
<p><code>adloom sample remove</code> takes all of it away.</p></div></footer>"""


def shop_pages() -> list[SamplePage]:
    return [_front(), _basket(), *map(_department, DEPARTMENTS), *map(_product, PRODUCTS)]


def _header(current: Department | None = None) -> str:
    nav = "".join(
        f'<a href="{department.path}"{" aria-current=page" if department is current else ""}>{escape(department.name)}</a>'
        for department in DEPARTMENTS
    )
    return f"""<a class="skip" href="#main">To the shelves</a>
<p class="small notice">Free delivery over £40, in this story at least</p>
<header class="counter"><div class="page"><a class="name" href="{FRONT}">Meadow <i>&amp;</i> Oak</a>
<nav class="small" aria-label="Shelves">{nav}<a href="{FRONT.removesuffix("/shop")}">Magazine</a>
<a class="bag" href="{BASKET}">Basket</a></nav></div></header>"""


def _front() -> SamplePage:
    shelves = "".join(
        f'<a class="shelf" href="{department.path}"><span class="frame">{image(_first_on(department).picture(600, 400))}</span>'
        f'<b>{escape(department.name)}</b><span class="small">{escape(department.line)}</span></a>'
        for department in DEPARTMENTS
    )
    new = "".join(_tile(product) for product in PRODUCTS[:NEW_COUNT])
    body = f"""{_header()}<main id="main" class="page">
<section class="window"><div><p class="small kicker">The autumn collection</p>
<h1>Things for cold evenings</h1><p>Made slowly, by people whose names we know, to be used for longer than you plan to.</p>
<p><a class="button" href="{DEPARTMENTS[2].path}">See what is new</a></p></div>
<div class="frame">{image(PRODUCTS[6].picture(900, 600), "Three folded blankets", is_first=True)}</div></section>
<section class="shelves" aria-label="Shelves">{shelves}</section>
{slot("oak-pair")}
<section><h2>New this month</h2><div class="tiles">{new}</div></section>
<section><h2>From our friends</h2>{slot("oak-grid")}</section>
</main>{FOOTER}"""
    return SamplePage(path=FRONT, title="Meadow & Oak", house=HOUSE, body=body, slots=FRONT_SLOTS)


def _first_on(department: Department) -> SampleProduct:
    return next(product for product in PRODUCTS if product.department == department.key)


def _tile(product: SampleProduct) -> str:
    return f"""<a class="tile" href="{product.path}"><span class="frame">{image(product.picture(500, 500))}</span>
<b>{escape(product.name)}</b><span class="small">{escape(product.line)}</span><span class="price">£{product.pounds}</span></a>"""


def _department(department: Department) -> SamplePage:
    tiles = "".join(_tile(product) for product in PRODUCTS if product.department == department.key)
    body = f"""{_header(department)}<main id="main" class="page"><section class="title"><h1>{escape(department.name)}</h1>
<p>{escape(department.line)}</p></section><div class="tiles three">{tiles}</div></main>{FOOTER}{slot("oak-popup")}"""
    return SamplePage(
        path=department.path,
        title=f"{department.name} · Meadow & Oak",
        house=HOUSE,
        body=body,
        slots=DEPARTMENT_SLOTS,
    )


def _product(product: SampleProduct) -> SamplePage:
    department = DEPARTMENT_BY_KEY[product.department]
    also = "".join(_tile(other) for other in _also(product))
    body = f"""{_header(department)}<main id="main" class="page">
<p class="small crumbs"><a href="{FRONT}">Shop</a> / <a href="{department.path}">{escape(department.name)}</a></p>
<div class="product"><div class="frame">{image(product.picture(800, 800), product.name, is_first=True)}</div>
<div><h1>{escape(product.name)}</h1><p class="price">£{product.pounds}</p><p>{escape(product.text)}</p>
<p class="small">{escape(product.origin)}</p><p><a class="button" href="{BASKET}">Add to basket</a></p>
{slot("oak-product")}</div></div>
<section><h2>Also on our shelves</h2><div class="tiles three">{also}</div></section></main>{FOOTER}"""
    return SamplePage(
        path=product.path, title=f"{product.name} · Meadow & Oak", house=HOUSE, body=body, slots=PRODUCT_SLOTS
    )


def _also(product: SampleProduct) -> list[SampleProduct]:
    at = PRODUCTS.index(product)
    return [PRODUCTS[(at + step) % len(PRODUCTS)] for step in range(1, ALSO_COUNT + 1)]


def _basket() -> SamplePage:
    body = f"""{_header()}<main id="main" class="page"><section class="title"><h1>Your basket is empty</h1>
<p>It always will be: nothing is sold here. But if an ad brought you, your click is in the ledger by now, and the
statistics show it.</p><p><a class="button" href="{FRONT}">Back to the shop</a></p></section></main>{FOOTER}"""
    return SamplePage(path=BASKET, title="Basket · Meadow & Oak", house=HOUSE, body=body)
