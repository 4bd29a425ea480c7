"""The sample's pictures, drawn by us: nothing is loaded from anywhere else."""

import msgspec


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A banner: its picture, and the words that the page sets over it."""

    name: str
    alt: str
    headline: str
    subheadline: str
    label: str
    width: int
    height: int
    background: str
    shapes: str

    @property
    def path(self) -> str:
        """Where it is served."""
        return f"/sample/{self.name}.svg"

    def svg(self) -> str:
        """Draw it."""
        size = f'width="{self.width}" height="{self.height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {self.width} {self.height}">'
            f'<rect {size} fill="{self.background}"/>{self.shapes}</svg>'
        )


AUTUMN = Picture(
    name="autumn",
    alt="Hills in autumn, with three trees under a low sun",
    headline="Autumn at Meadow & Oak",
    subheadline="Blankets, boots and everything that is better by a fire.",
    label="See the collection",
    width=1200,
    height=300,
    background="#b9562b",
    shapes="""
    <circle cx="930" cy="120" r="150" fill="#d27a3f"/><circle cx="930" cy="120" r="76" fill="#f7d9a4"/>
    <path d="M330 262Q650 96 830 190T1200 150V300H330Z" fill="#8f4024"/>
    <path d="M0 262Q220 190 470 240T900 222T1200 240V300H0Z" fill="#5f2d1d"/>
    <path d="M0 290Q360 250 700 280T1200 272V300H0Z" fill="#43200f"/>
    <g stroke="#2f170b" stroke-width="7"><path d="M700 262V176M1030 256V188M1098 262V158"/></g>
    <g fill="#e7a13d"><circle cx="700" cy="158" r="42"/><circle cx="674" cy="180" r="26"/></g>
    <g fill="#d9772f"><circle cx="1030" cy="178" r="32"/><circle cx="1050" cy="192" r="20"/></g>
    <g fill="#c8492c"><circle cx="1098" cy="138" r="46"/><circle cx="1124" cy="162" r="28"/></g>
    <g fill="#f0b75c"><path d="M770 96q12-14 24 0-12 14-24 0zM842 232q10-12 20 0-10 12-20 0zM1000 92q9-11 18 0-9 11-18 0zM620 232q8-10 16 0-8 10-16 0z"/></g>
    """,
)
TEA = Picture(
    name="tea",
    alt="A cup of tea, steaming",
    headline="A tea a day",
    subheadline="Twelve small gardens, one box.",
    label="Taste them",
    width=600,
    height=400,
    background="#2f6b5c",
    shapes="""
    <circle cx="430" cy="180" r="190" fill="#3b7d6c"/><path d="M0 318H600V400H0Z" fill="#1d463c"/>
    <ellipse cx="430" cy="330" rx="130" ry="16" fill="#153630"/>
    <path d="M510 214q66-6 58 48-8 46-76 40" fill="none" stroke="#f3e7d3" stroke-width="16"/>
    <path d="M336 196H524Q522 322 470 326H390Q338 322 336 196Z" fill="#f3e7d3"/>
    <ellipse cx="430" cy="198" rx="94" ry="17" fill="#dccbb0"/><ellipse cx="430" cy="201" rx="80" ry="12" fill="#a4592b"/>
    <g fill="none" stroke="#cfe3d8" stroke-width="7" stroke-linecap="round" opacity=".8">
    <path d="M398 166q-18-24 0-48t0-48M432 160q-18-24 0-48t0-48M466 166q-18-24 0-48t0-48"/></g>
    """,
)
LAMP = Picture(
    name="lamp",
    alt="A lamp over an open book",
    headline="Reading light",
    subheadline="Warm enough to stay up late.",
    label="Find yours",
    width=600,
    height=400,
    background="#28335c",
    shapes="""
    <path d="M392 128L300 330H560L468 128Z" fill="#f0a93b" opacity=".3"/>
    <path d="M0 326H600V400H0Z" fill="#182041"/>
    <path d="M430 0V66" stroke="#0f1530" stroke-width="6"/>
    <path d="M394 64H466L500 130H360Z" fill="#d8654a"/><ellipse cx="430" cy="130" rx="70" ry="10" fill="#f9e3ad"/>
    <path d="M430 316Q380 290 316 308V330Q380 316 430 338Q480 316 544 330V308Q480 290 430 316Z" fill="#f3e7d3"/>
    <path d="M430 316V338" stroke="#b9a98f" stroke-width="4"/>
    <g fill="#f6d78b"><circle cx="90" cy="70" r="3"/><circle cx="180" cy="120" r="2"/><circle cx="250" cy="50" r="3"/><circle cx="552" cy="84" r="3"/><circle cx="310" cy="104" r="2"/></g>
    """,
)

PICTURES = (AUTUMN, TEA, LAMP)
