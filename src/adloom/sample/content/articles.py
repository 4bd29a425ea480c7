"""The magazine's articles and the shop's products, as data."""

from typing import Final

import msgspec

from adloom.sample.content.catalog import read_data
from adloom.sample.content.pictures import Picture


class ArticleCategory(msgspec.Struct, frozen=True):
    """A node of IAB's content taxonomy that an article is about."""

    id: str
    confidence: float


class Article(msgspec.Struct, frozen=True, kw_only=True):
    """An article of the magazine."""

    key: str
    section: str
    title: str
    lead: str
    author: str
    minutes: int
    subject: str
    palette: str
    categories: tuple[ArticleCategory, ...]
    text: tuple[str, ...]
    is_long: bool = False

    @property
    def path(self) -> str:
        return f"/sample/articles/{self.key}"

    def make_picture(self, width: int, height: int) -> Picture:
        return Picture(self.subject, self.palette, width, height)


class Department(msgspec.Struct, frozen=True):
    """A department of the shop."""

    key: str
    name: str
    line: str

    @property
    def path(self) -> str:
        return f"/sample/shop/{self.key}"


class SampleProduct(msgspec.Struct, frozen=True, kw_only=True):
    """A product of the shop."""

    key: str
    department: str
    name: str
    pounds: int
    line: str
    text: str
    origin: str
    subject: str
    palette: str

    @property
    def path(self) -> str:
        return f"/sample/shop/products/{self.key}"

    def make_picture(self, width: int, height: int) -> Picture:
        return Picture(self.subject, self.palette, width, height)


class _Shop(msgspec.Struct, frozen=True):
    departments: tuple[Department, ...]
    products: tuple[SampleProduct, ...]


ARTICLES: Final = msgspec.json.decode(read_data("articles.json"), type=tuple[Article, ...])
_SHOP: Final = msgspec.json.decode(read_data("shop.json"), type=_Shop)
DEPARTMENTS: Final = _SHOP.departments
PRODUCTS: Final = _SHOP.products
