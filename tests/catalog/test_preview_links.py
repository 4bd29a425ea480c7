"""Preview links: who may make one, what it shows, and that it shows and moves nothing else."""

from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.catalog.preview.token import (
    PREVIEW_LIFETIME,
    PREVIEW_TOKEN_CHARACTERS,
    PreviewGrant,
    PreviewKeys,
    PreviewLinkExpiredError,
    PreviewLinkInvalidError,
)
from adloom.core.caller import Role
from adloom.core.errors import AdloomError
from adloom.core.ids import BannerId, PlacementId, SystemIds
from adloom.events.ingest.token import TokenKeys, TokenRejection
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from adloom.runtime.postgres import Pool
from adloom.serving.tag.preview import PreviewRoutes
from tests.support.builders import NOON, Json
from tests.support.control import SECRET, Client, ControlPlane, problem
from tests.support.for_each import for_each

OTHER_SECRET = "another-secret-that-is-long-enough-too"
PAGE = "https://magazine.example/front?a=1&adloom-preview=old#top"


class Delivery:
    """The route that shows previews, at the clock of the control plane."""

    def __init__(self, control: ControlPlane, pool: Pool) -> None:
        self._routes = PreviewRoutes(pool, PreviewKeys(SECRET), control.clock, SystemIds())

    async def show(self, url: str) -> Json:
        """Return the slots of a link, or the problem that refuses it."""
        [token] = parse_qs(urlsplit(url).query)["adloom-preview"]
        request = FastRequest(b"POST", b"/v1/preview", body=msgspec.json.encode({"token": token}))
        [route] = self._routes.list_routes()
        try:
            answer = await cast("Awaitable[FastAnswer]", route.handler(request))
        except AdloomError as error:
            return {"errorCode": error.code, "detail": error.detail}
        return msgspec.json.decode(answer.body)["slots"]


async def link(client: Client, banner: Json, placement: Json, **body: object) -> Any:
    path = f"/admin/banners/{banner['id']}/preview-link"
    return await client.post(path, json={"placementId": placement["id"], **body})


async def make_link(client: Client, banner: Json, placement: Json, **body: object) -> str:
    answer = await link(client, banner, placement, **body)
    assert answer.status_code == 200, answer.text
    return answer.json()["url"]


async def test_a_link_shows_the_banner_as_it_would_look_there_although_its_campaign_is_a_draft(
    control: ControlPlane, admin: Client, pool: Pool
) -> None:
    delivery = Delivery(control, pool)
    site = await admin.make_site(domain="magazine.example")
    placement = await admin.make_placement(slug="front", layoutType="half_pair", siteId=site["id"])
    alone = await admin.make_placement(slug="alone", isActive=False)
    banner = await admin.make_banner(headline="Autumn", ctaUrl="https://shop.example/?x=1", utmSource="us")
    campaign = await admin.make_campaign()
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, banner, overrideHeadline="Here it is autumn")

    answer = (await link(admin, banner, placement, url=PAGE)).json()
    slots = await delivery.show(answer["url"])

    assert answer["url"].startswith("https://magazine.example/front?a=1&adloom-preview=")
    assert answer["url"].endswith("#top")
    assert "old" not in answer["url"]
    assert answer["placementSlug"] == "front"
    assert datetime.fromisoformat(answer["expiresAt"]) == control.clock.now() + PREVIEW_LIFETIME
    [shown] = slots["front"]["banners"]
    assert (slots["front"]["delivery"], slots["front"]["placement"]["layoutType"]) == ("preview", "half_pair")
    assert (shown["headline"], shown["label"]) == ("Here it is autumn", "Preview")
    # Straight to the destination, without a token: nothing can be counted.
    assert shown["clickUrl"] == shown["ctaUrl"] == "https://shop.example/?x=1&utm_source=us"
    assert not {"trackingToken", "impressionUrl", "campaignId"} & shown.keys()
    assert (await make_link(admin, banner, placement)).startswith("https://magazine.example/?adloom-preview=")
    on_its_own = await make_link(admin, banner, alone)
    assert on_its_own.startswith("http://127.0.0.1:8080/serve/alone.html?adloom-preview=")
    assert [*await delivery.show(on_its_own)] == ["alone"]


async def test_an_advertiser_sees_its_own_banners_where_it_has_asked_until_it_is_refused(
    control: ControlPlane, pool: Pool
) -> None:
    delivery = Delivery(control, pool)
    publisher, stranger = (control.acting_as(Role.PUBLISHER, SystemIds().make()) for _ in range(2))
    advertiser, rival = (control.acting_as(Role.ADVERTISER, SystemIds().make()) for _ in range(2))
    placement, elsewhere = await publisher.make_placement(), await publisher.make_placement(slug="elsewhere")
    banner, other = await advertiser.make_banner(), await advertiser.make_banner()
    of_rival = await rival.make_banner()
    campaign = await advertiser.make_campaign(bidAmount=5)

    problem(await link(advertiser, banner, placement), 409, "PREVIEW_REFUSED")
    await advertiser.link(campaign, placement)
    await advertiser.assign(campaign, placement, banner)
    links = [
        await make_link(advertiser, banner, placement),
        await make_link(advertiser, other, placement),  # Not assigned yet.
        await make_link(publisher, banner, placement),
    ]
    for url in links:
        assert [*await delivery.show(url)] == [placement["slug"]]
    problem(await link(advertiser, banner, elsewhere), 409, "PREVIEW_REFUSED")
    for client, one in (
        (advertiser, of_rival),
        (rival, banner),
        (publisher, of_rival),
        (publisher, other),  # Nobody has asked for it.
        (stranger, banner),
    ):
        problem(await link(client, one, placement), 404, "BANNER_NOT_FOUND")
    problem(await link(advertiser, banner, {"id": str(SystemIds().make())}), 404, "PLACEMENT_NOT_FOUND")

    decision = f"/admin/placements/{placement['id']}/links/{campaign['id']}"
    assert (await publisher.post(decision, json={"decision": "refuse"})).status_code == 200

    problem(await link(advertiser, banner, placement), 409, "PREVIEW_REFUSED")
    # Links that are out already show what their maker may see now.
    assert [(await delivery.show(url)).get("errorCode") for url in links] == [
        "PREVIEW_REFUSED",
        "PREVIEW_REFUSED",
        None,
    ]


async def test_a_link_ends_after_a_day_with_its_banner_or_when_it_is_changed(
    control: ControlPlane, admin: Client, pool: Pool
) -> None:
    delivery = Delivery(control, pool)
    banner, placement = await admin.make_banner(), await admin.make_placement()
    url = await make_link(control.acting_as(Role.VIEWER), banner, placement)
    changed = url[:-5] + ("A" if url[-5] != "A" else "B") + url[-4:]

    assert (await delivery.show(changed))["errorCode"] == "PREVIEW_LINK_INVALID"
    assert (await delivery.show(url[:-1]))["errorCode"] == "PREVIEW_LINK_INVALID"
    control.clock.advance(PREVIEW_LIFETIME)
    expired = await delivery.show(url)
    assert expired["errorCode"] == "PREVIEW_LINK_EXPIRED"
    assert "Make a new one in the console" in expired["detail"]

    again = await make_link(control.acting_as(Role.VIEWER), banner, placement)
    deleted = await control.acting_as(Role.ADMIN).delete(f"/admin/banners/{banner['id']}")
    assert deleted.is_success
    assert (await delivery.show(again))["errorCode"] == "BANNER_NOT_FOUND"


async def test_without_the_secret_of_delivery_there_are_no_links(
    control: ControlPlane, admin: Client
) -> None:
    control.app.state.preview_keys = None
    banner, placement = await admin.make_banner(), await admin.make_placement()

    body = problem(await link(admin, banner, placement), 503, "UNAVAILABLE")

    assert "ADLOOM_TOKEN_SECRET" in body["detail"]
    wrong = await link(admin, banner, placement, url="javascript:alert(1)")
    assert wrong.status_code == 400


ids = st.uuids()
grants = st.builds(
    PreviewGrant,
    banner_id=ids.map(BannerId),
    placement_id=ids.map(PlacementId),
    account_id=st.none() | ids.filter(lambda one: one != UUID(int=0)),
    expires_at=st.integers(1, 10**9).map(lambda seconds: NOON + timedelta(seconds=seconds)),
)


@given(grants, st.integers(0, PREVIEW_TOKEN_CHARACTERS - 1), st.sampled_from("AZaz09-_"))
def test_a_token_says_what_was_signed_and_a_changed_one_says_nothing(
    grant: PreviewGrant, place: int, letter: str
) -> None:
    keys = PreviewKeys(SECRET)
    token = keys.sign(grant)
    changed = token[:place] + letter + token[place + 1 :]

    assert len(token) == PREVIEW_TOKEN_CHARACTERS
    assert keys.verify(token, now=NOON) == PreviewKeys(OTHER_SECRET, older=[SECRET]).verify(token, now=NOON)
    assert keys.verify(token, now=NOON) == grant
    with pytest.raises(PreviewLinkExpiredError):
        keys.verify(token, now=grant.expires_at)
    with pytest.raises(PreviewLinkInvalidError):
        PreviewKeys(OTHER_SECRET).verify(token, now=NOON)
    if changed != token:
        with pytest.raises(PreviewLinkInvalidError):
            keys.verify(changed, now=NOON)
    # It is no token of an offer, whatever it is filled up with.
    assert isinstance(TokenKeys(SECRET).verify(token.encode(), now=NOON), TokenRejection)
    assert isinstance(TokenKeys(SECRET).verify(token.encode() + b"A" * 40, now=NOON), TokenRejection)


@for_each(
    "text", ["", "x", "é" * PREVIEW_TOKEN_CHARACTERS, "=" * PREVIEW_TOKEN_CHARACTERS, "A" * 92, "+/" * 46]
)
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(PreviewLinkInvalidError):
        PreviewKeys(SECRET).verify(text, now=NOON)
