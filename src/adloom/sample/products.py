"""What Meadow & Oak has on its shelves."""

from typing import Final

import msgspec

from adloom.sample.pictures import Picture


class Shelf(msgspec.Struct, frozen=True):
    """A part of the shop."""

    key: str
    name: str
    line: str

    @property
    def path(self) -> str:
        """Where it is served."""
        return f"/sample/shop/{self.key}"


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """Something that could be bought, were this a shop."""

    key: str
    shelf: str
    name: str
    pounds: int
    line: str
    text: str
    made: str
    subject: str
    palette: str

    @property
    def path(self) -> str:
        """Where it is served."""
        return f"/sample/shop/products/{self.key}"

    def picture(self, width: int, height: int) -> Picture:
        """Its picture, in a size."""
        return Picture(self.subject, self.palette, width, height)


SHELVES: Final = (
    Shelf("table-and-tea", "Table & tea", "For the hour that belongs to nobody else."),
    Shelf("light-and-fire", "Light & fire", "Small suns, for when the large one is off early."),
    Shelf("wool-and-walking", "Wool & walking", "Go out in it, or sit under it."),
)
PRODUCTS: Final = (
    Product(
        key="teapot",
        shelf="table-and-tea",
        name="The smiling teapot",
        pounds=42,
        line="Stoneware, one litre, does not drip.",
        text="Thrown by hand and glazed in oat. The spout was redrawn eleven times until it stopped "
        "dripping; the smile was an accident that nobody wanted to correct.",
        made="Made in Devon by two people and a dog.",
        subject="teapot",
        palette="honey",
    ),
    Product(
        key="mug",
        shelf="table-and-tea",
        name="A mug for two hands",
        pounds=18,
        line="Holds a proper half pint.",
        text="Wide enough to warm both hands, heavy enough to stay where you put it. Goes into the dishwasher, "
        "though it would rather not.",
        made="Made in Devon, in the same kiln as the teapot.",
        subject="tea",
        palette="pine",
    ),
    Product(
        key="board",
        shelf="table-and-tea",
        name="The bread board",
        pounds=36,
        line="One piece of ash, oiled twice.",
        text="Cut from a single plank, so that no two are alike. Oil it once a year and it will outlive the loaf, "
        "the knife and probably the kitchen.",
        made="Made in Shropshire from trees that fell by themselves.",
        subject="loaf",
        palette="slate",
    ),
    Product(
        key="lantern",
        shelf="light-and-fire",
        name="The storm lantern",
        pounds=54,
        line="Burns through a gale.",
        text="Steel and old-fashioned glass, with a chimney that turns wind into draught. Hang it at the gate when "
        "somebody is late.",
        made="Made in Sheffield since 1911, with one pause.",
        subject="lantern",
        palette="plum",
    ),
    Product(
        key="candle",
        shelf="light-and-fire",
        name="Beeswax candle",
        pounds=16,
        line="Forty hours, no perfume.",
        text="Nothing but wax and a cotton wick. It smells of honey because it was some.",
        made="Made by the bees of the lower meadow.",
        subject="candle",
        palette="rose",
    ),
    Product(
        key="lamp",
        shelf="light-and-fire",
        name="The reading lamp",
        pounds=89,
        line="Hangs low, shines warm.",
        text="A shade of spun steel on three metres of cloth cable. The light ends where the page does.",
        made="Made with Lumen, in Berlin.",
        subject="lamp",
        palette="night",
    ),
    Product(
        key="blanket",
        shelf="wool-and-walking",
        name="The lambswool throw",
        pounds=95,
        line="Three colours, all of them autumn.",
        text="Woven slowly, so that it stays soft. Large enough for two, if the two like each other.",
        made="Made in Pembrokeshire, washed in the river Teifi.",
        subject="blanket",
        palette="rust",
    ),
    Product(
        key="boots",
        shelf="wool-and-walking",
        name="The long-way boots",
        pounds=165,
        line="Resoled for as long as you walk.",
        text="Full-grain leather, stitched rather than glued. Send them back every few years and we put new soles "
        "under your old miles.",
        made="Made in Northampton.",
        subject="boots",
        palette="moss",
    ),
    Product(
        key="basket",
        shelf="wool-and-walking",
        name="The market basket",
        pounds=48,
        line="Willow, wide, opinionated.",
        text="Woven from one winter's willow. Creaks a little for the first month, then never again.",
        made="Made on the Somerset levels.",
        subject="basket",
        palette="pine",
    ),
    Product(
        key="chair",
        shelf="wool-and-walking",
        name="The kitchen chair",
        pounds=210,
        line="Oak and ash, no screws.",
        text="Held together by wedges and stubbornness. The seat is shaped by hand, and gets better with use.",
        made="Made in the Chilterns.",
        subject="chair",
        palette="slate",
    ),
)
PRODUCT_BY_KEY: Final = {product.key: product for product in PRODUCTS}
