"""Put the sample into the catalog, over the admin API like any other program would."""

from collections.abc import Sequence
from http import HTTPStatus
from urllib.request import Request, urlopen

import msgspec

from adloom.sample.pictures import AUTUMN, LAMP, TEA, Picture

HERO_SLUG = "sample-hero"
ASIDE_SLUG = "sample-aside"
ANSWER_SECONDS_MAX = 10.0

PLACEMENTS: Sequence[tuple[dict[str, object], Sequence[Picture]]] = (
    ({"slug": HERO_SLUG, "label": "Sample: across the page", "layoutType": "full_static"}, (AUTUMN,)),
    (
        {
            "slug": ASIDE_SLUG,
            "label": "Sample: beside the text",
            "layoutType": "sidebar_stack",
            "maxBanners": 2,
        },
        (TEA, LAMP),
    ),
)


class Made(msgspec.Struct, frozen=True):
    """The part of an answer that the next request needs."""

    id: str


class AdminClient:
    """As much of a client of the admin API as the sample needs."""

    def __init__(self, control_url: str, token: str) -> None:
        self._control_url = control_url
        self._token = token

    def make(self, path: str, body: dict[str, object]) -> Made:
        """Make a thing that has an id of its own."""
        return msgspec.json.decode(self.send("POST", path, body), type=Made)

    def send(self, method: str, path: str, body: dict[str, object] | None = None) -> bytes:
        """Send a request, and give the body of its answer."""
        request = Request(  # noqa: S310 - the address is our own
            f"{self._control_url}{path}",
            method=method,
            data=None if body is None else msgspec.json.encode(body),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )
        with urlopen(request, timeout=ANSWER_SECONDS_MAX) as answer:  # noqa: S310 - likewise
            assert answer.status < HTTPStatus.BAD_REQUEST
            return answer.read()


def load_sample(admin: AdminClient, *, delivery_url: str) -> None:
    """Make a running campaign on two placements."""
    campaign = admin.make(
        "/admin/campaigns",
        {
            "name": "Sample: autumn at Meadow & Oak",
            "description": "Made by the first start. Delete it when you have seen enough.",
            "source": "system",
            "advertiserName": "Meadow & Oak",
        },
    )
    links = f"/admin/campaigns/{campaign.id}/placements"
    for body, pictures in PLACEMENTS:
        placement = admin.make("/admin/placements", body)
        admin.send("POST", links, {"placementId": placement.id})
        for order, picture in enumerate(pictures):
            banner = admin.make("/admin/banners", _banner(picture, delivery_url))
            assignment: dict[str, object] = {"bannerId": banner.id, "displayOrder": order}
            admin.send("POST", f"{links}/{placement.id}/banners", assignment)
    admin.send("PATCH", f"/admin/campaigns/{campaign.id}/activate")


def _banner(picture: Picture, delivery_url: str) -> dict[str, object]:
    return {
        "title": f"Sample: {picture.headline}",
        "source": "system",
        "primaryImageUrl": f"{delivery_url}{picture.path}",
        "primaryImageAlt": picture.alt,
        "headline": picture.headline,
        "subheadline": picture.subheadline,
        "ctaLabel": picture.label,
        "ctaUrl": f"{delivery_url}/sample/shop",
        "utmSource": "adloom-sample",
        "utmContent": picture.name,
        "bgColor": picture.background,
        "tags": ["sample"],
    }
