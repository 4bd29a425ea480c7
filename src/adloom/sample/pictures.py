"""The sample's pictures, drawn by us: nothing is loaded from anywhere else."""

from xml.sax.saxutils import escape

import msgspec


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A banner's picture: a landscape in two colours with a line of text."""

    name: str
    words: str
    width: int
    height: int
    sky: str
    ground: str

    @property
    def path(self) -> str:
        """Where it is served."""
        return f"/sample/{self.name}.svg"

    def svg(self) -> str:
        """Draw it."""
        width, height = self.width, self.height
        horizon, size = height * 0.62, height * 0.14
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
            f'<rect width="{width}" height="{height}" fill="{self.sky}"/>'
            f'<circle cx="{width * 0.8:.0f}" cy="{height * 0.32:.0f}" r="{height * 0.16:.0f}" fill="#fff" opacity=".85"/>'
            f'<path d="M0 {horizon:.0f} Q{width * 0.25:.0f} {height * 0.4:.0f} {width * 0.5:.0f} {horizon:.0f} '
            f'T{width} {horizon:.0f} V{height} H0Z" fill="{self.ground}"/>'
            f'<path d="M0 {height * 0.78:.0f} Q{width * 0.4:.0f} {height * 0.6:.0f} {width} {height * 0.86:.0f} '
            f'V{height} H0Z" fill="{self.ground}" opacity=".6"/>'
            f'<text x="{width * 0.05:.0f}" y="{height * 0.3:.0f}" font-family="Georgia, serif" '
            f'font-size="{size:.0f}" fill="#fff">{escape(self.words)}</text></svg>'
        )


HERO = Picture(
    name="autumn", words="Autumn at Meadow & Oak", width=1200, height=300, sky="#c8693a", ground="#5b3a29"
)
TEA = Picture(name="tea", words="A tea a day", width=600, height=400, sky="#3f7d6e", ground="#1f4b42")
LAMP = Picture(name="lamp", words="Reading light", width=600, height=400, sky="#3b4a78", ground="#20294a")

PICTURES = (HERO, TEA, LAMP)
