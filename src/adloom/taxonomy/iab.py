"""IAB Tech Lab's taxonomies, from tables in the package (CC BY 3.0, see `data/NOTICE`); read once, at first use."""

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Final

import msgspec

from adloom.taxonomy.tree import Taxonomy

ATTRIBUTION: Final = (
    "Content Taxonomy 3.1 and Ad Product Taxonomy 2.0 by IAB Tech Lab, licensed under CC BY 3.0"
    " (https://creativecommons.org/licenses/by/3.0/)."
)
CONTENT_HEADERS: Final = 2
PRODUCT_HEADERS: Final = 1


@functools.cache
def load_content() -> Taxonomy:
    """Return Content Taxonomy 3.1: what pages are about."""
    rows = _read("content-3.1.tsv", headers=CONTENT_HEADERS)
    return Taxonomy({row[0]: _build_path(row[3:7]) for row in rows})


class OfContentNode(msgspec.Struct, frozen=True):
    """Something of a node of the content taxonomy; answers read its name and its path."""

    id: str

    @property
    def name(self) -> str:
        return load_content().find_name(self.id)

    @property
    def path(self) -> tuple[str, ...]:
        return load_content().find_path(self.id)


@functools.cache
def load_products() -> Taxonomy:
    """Return Ad Product Taxonomy 2.0: what ads are for."""
    rows = _read("ad-product-2.0.tsv", headers=PRODUCT_HEADERS)
    return Taxonomy({row[0]: _build_path(row[3:6]) for row in rows})


@functools.cache
def load_content_of_products() -> Mapping[str, str]:
    """Map products to the content that goes with them, where IAB's tables lead to a node of Content 3.1.

    IAB maps products to Content 1.0, and that to 2.0, whose ids 3.1 has kept. Both ends of the first table are
    read by name: its ids are of an earlier edition, and some were counted up by mistake.
    """
    codes = {row[1]: row[3] for row in _read("content-1.0-to-content-2.0.tsv", headers=1)}
    wanted = {
        (_fold(row[2]), _fold(row[0])): codes.get(row[5])
        for row in _read("ad-product-2.0-to-content-1.0.tsv", headers=2)
    }
    found = {node.id: wanted.get((_fold(node.path[0]), _fold(node.name))) for node in load_products()}
    return {
        product_id: content_id
        for product_id, content_id in found.items()
        if content_id and content_id in load_content()
    }


def _read(name: str, *, headers: int) -> list[list[str]]:
    text = resources.files("adloom.taxonomy").joinpath("data", name).read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.split("\t")] for line in text.splitlines()[headers:] if line.strip()
    ]
    assert rows, name
    return rows


def _build_path(tiers: list[str]) -> tuple[str, ...]:
    return tuple(tier for tier in tiers if tier)


def _fold(name: str) -> str:
    return name.casefold()
