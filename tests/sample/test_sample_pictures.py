"""The pictures of the sample: valid SVG without external content."""

from xml.etree import ElementTree as ET

from adloom.sample.content.catalog import BANNERS
from adloom.sample.content.document import find_phone_picture, find_picture
from adloom.sample.content.pictures import HILLS, PALETTES, SUBJECTS, Picture
from tests.support.for_each import for_each


@for_each("subject", [*SUBJECTS, HILLS])
@for_each("size", [(1200, 300), (600, 400), (400, 800)])
def test_a_picture_is_well_formed_and_has_its_declared_size(subject: str, size: tuple[int, int]) -> None:
    width, height = size
    for is_for_ad in (False, True):
        drawn = ET.fromstring(  # noqa: S314 - our own
            Picture(subject, "rust", width, height, is_for_ad).render_svg()
        )

        assert (drawn.get("width"), drawn.get("height")) == (str(width), str(height))
        assert drawn.get("viewBox") == f"0 0 {width} {height}"


def test_no_picture_loads_external_content() -> None:
    drawn = "".join(Picture(subject, "night", 600, 400).render_svg() for subject in [*SUBJECTS, HILLS])

    assert "href" not in drawn
    assert "url(" not in drawn
    assert drawn.count("http") == drawn.count("http://www.w3.org/2000/svg")


def test_every_palette_makes_a_different_picture() -> None:
    assert len({Picture("tea", palette, 600, 400).render_svg() for palette in PALETTES}) == len(PALETTES)


def test_every_banner_has_a_picture_for_phones() -> None:
    for creative in BANNERS:
        shown = find_phone_picture(creative) or find_picture(creative)

        assert shown.width <= 600
