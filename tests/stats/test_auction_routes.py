"""Recorded auctions over HTTP: whole for an admin, an advertiser's own part for an advertiser."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from adloom.core.caller import Role
from adloom.core.ids import CampaignId, derive_auction_id
from adloom.core.money import Micros
from adloom.events.log.auction_bids import LOST, REMOVED
from adloom.events.log.event import AuctionEntry, BidsUnderFloor, RemovedCandidates
from adloom.runtime.postgres import Pool
from tests.events.builders import (
    BANNER,
    CAMPAIGN,
    OTHER_BANNER,
    PLACEMENT,
    REQUEST,
    USER,
    a_bid,
    a_win,
    an_auction,
)
from tests.support.auctions import apply_auctions
from tests.support.builders import NOON, UNKNOWN_ID, Json
from tests.support.control import Client, ControlPlane, error_fields, problem
from tests.support.for_each import for_each

PATH = "/api/v1/admin/auctions"
MINUTE = timedelta(minutes=1)


async def read(client: Client, path: str = PATH, **params: Any) -> Json:
    answer = await client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids_of(page: Json) -> list[str]:
    return [item["id"] for item in page["items"]]


def unsold(**fields: Any) -> AuctionEntry:
    return an_auction(
        uuid4(), winner=None, bid_count=0, bids=b"", removed=(RemovedCandidates("daily_budget", 3),), **fields
    )


async def test_an_auction_is_listed_with_the_documented_fields(admin: Client, pool: Pool) -> None:
    await apply_auctions(pool, an_auction())

    assert await read(admin) == {
        "items": [
            {
                "id": str(REQUEST),
                "userId": str(USER),
                "placementType": "feed",
                "placementId": str(PLACEMENT),
                "pageUrl": None,
                "auctionTime": "2026-11-15T12:00:00Z",
                "scoring": "heuristic",
                "bidCount": 2,
                "winningAdId": str(BANNER),
                "winningCampaignId": str(CAMPAIGN),
                "finalPrice": 7.01,
                "winningeCPM": 9.0,
                "charge": 7.01,
                "names": {},
            }
        ],
        "totalCount": 1,
        "page": 1,
        "pageSize": 20,
        "totalPages": 1,
    }


async def test_an_auction_is_read_with_its_bids_and_the_steps_that_removed_some(
    admin: Client, pool: Pool
) -> None:
    await apply_auctions(pool, an_auction(floor=Micros(2_500_000), scoring_version=4))

    auction = await read(admin, f"{PATH}/{REQUEST}")

    assert (auction["floorCpm"], auction["scoringVersion"]) == (2.5, 4)
    assert auction["context"] == {"country": "FR"}
    assert auction["removed"] == {"targeting:country": 1}
    assert [(bid["outcome"], bid["removedBy"], bid["ecpm"]) for bid in auction["bids"]] == [
        ("won", None, 9.0),
        ("lost", None, 7.0),
        ("removed", "targeting:country", 5.0),
    ]
    assert auction["bids"][1] == {
        "adId": str(OTHER_BANNER),
        "campaignId": str(CAMPAIGN),
        "bid": 7.0,
        "bidType": "cpm",
        "bidAmount": 350.0,
        "predictedCtr": 0.02,
        "qualityScore": 1.0,
        "ecpm": 7.0,
        "outcome": "lost",
        "removedBy": None,
        "floorCpm": None,
        "wouldHaveToBid": 9.0001,
    }


async def test_the_newest_auction_is_listed_first_in_pages(admin: Client, pool: Pool) -> None:
    auctions = [an_auction(uuid4(), held_at=NOON - age * MINUTE) for age in (2, 0, 1)]
    await apply_auctions(pool, *auctions)
    oldest, newest, between = (str(one.auction_id) for one in auctions)

    first, second = await read(admin, pageSize=2), await read(admin, pageSize=2, page=2)

    assert (ids_of(first), ids_of(second)) == ([newest, between], [oldest])
    assert (first["totalCount"], first["totalPages"]) == (3, 2)
    assert ids_of(await read(admin, sort="auctionTime")) == [oldest, between, newest]


async def test_auctions_are_found_by_user_type_and_time(admin: Client, pool: Pool) -> None:
    feed = an_auction(uuid4())
    story = an_auction(uuid4(), placement_type="story", user_id=UNKNOWN_ID)
    yesterday = an_auction(uuid4(), held_at=NOON - timedelta(days=1))
    await apply_auctions(pool, feed, story, yesterday)

    async def found(**params: Any) -> set[str]:
        return set(ids_of(await read(admin, **params)))

    def among(*auctions: AuctionEntry) -> set[str]:
        return {str(one.auction_id) for one in auctions}

    assert await found(userId=str(UNKNOWN_ID)) == among(story)
    assert await found(placementType="feed") == among(feed, yesterday)
    assert await found(placementType="feed", userId=str(UNKNOWN_ID)) == set()
    assert await found(startDate="2026-11-15T00:00:00Z") == among(feed, story)
    assert await found(endDate="2026-11-15T12:00:00Z") == among(yesterday)
    assert await found(startDate="2026-11-14", endDate="2026-11-14") == among(yesterday)
    assert await found(startDate="2026-11-14", endDate="2026-11-15") == among(feed, story, yesterday)


@for_each(
    ("params", "field"),
    [
        ({"userId": "not-a-uuid"}, "userId"),
        ({"startDate": "yesterday"}, "startDate"),
        ({"endDate": "2026-13-01"}, "endDate"),
        ({"startDate": "2026-11-15", "endDate": "2026-11-14T00:00:00Z"}, "endDate"),
        ({"pageSize": "101"}, "pageSize"),
        ({"page": "0"}, "page"),
        ({"sort": "finalPrice"}, "sort"),
        ({"placementType": "t" * 101}, "placementType"),
        ({"slot": "feed"}, "slot"),
        ({"campaignId": "x"}, "campaignId"),
        ({"outcome": "lost"}, "outcome"),
    ],
)
async def test_what_cannot_be_asked_is_named(params: dict[str, str], field: str, admin: Client) -> None:
    answer = await admin.get(PATH, params=params)

    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {field}


async def test_an_unknown_auction_is_not_found(admin: Client) -> None:
    problem(await admin.get(f"{PATH}/{UNKNOWN_ID}"), 404, "AUCTION_NOT_FOUND")
    problem(await admin.get(f"{PATH}/not-an-id"), 400, "VALIDATION_FAILED")


async def test_statistics_cover_all_auctions_or_a_filtered_part(admin: Client, pool: Pool) -> None:
    nothing = {"totalAuctions": 0, "averageWinRate": 0.0, "averageeCPM": 0.0, "totalBidsPlaced": 0}
    assert await read(admin, f"{PATH}/statistics") == nothing
    await apply_auctions(
        pool,
        an_auction(uuid4()),
        an_auction(uuid4(), winner=a_win(ecpm=Micros(4_000_100)), bid_count=300, placement_type="story"),
        unsold(),
    )

    assert await read(admin, f"{PATH}/statistics") == {
        "totalAuctions": 3,
        "averageWinRate": 66.6667,
        "averageeCPM": 6.5,
        "totalBidsPlaced": 302,
    }
    assert await read(admin, f"{PATH}/statistics", placementType="story") == {
        "totalAuctions": 1,
        "averageWinRate": 100.0,
        "averageeCPM": 4.0001,
        "totalBidsPlaced": 300,
    }
    assert await read(admin, f"{PATH}/statistics", endDate="2026-11-14") == nothing


async def test_statistics_are_broken_down_by_type_campaign_and_hour(admin: Client, pool: Pool) -> None:
    rival = CampaignId(uuid4())
    both = a_bid() + a_bid(outcome=LOST) + a_bid(campaign=rival, ecpm=5_000_000, outcome=LOST)
    await apply_auctions(
        pool,
        an_auction(uuid4(), bids=both, bid_count=3),
        an_auction(uuid4(), placement_type="story", held_at=NOON + 61 * MINUTE),
        unsold(),
    )

    async def parts(by: str) -> list[Json]:
        return (await read(admin, f"{PATH}/statistics/breakdown", groupBy=by))["items"]

    one_win = {"averageWinRate": 100.0, "averageeCPM": 9.0}
    assert await parts("placementType") == [
        {
            "placementType": "feed",
            "totalAuctions": 2,
            "totalBidsPlaced": 3,
            "averageWinRate": 50.0,
            "averageeCPM": 9.0,
        },
        {"placementType": "story", "totalAuctions": 1, "totalBidsPlaced": 2, **one_win},
    ]
    assert await parts("campaign") == [
        {"campaignId": str(CAMPAIGN), "totalAuctions": 2, "totalBidsPlaced": 4, **one_win},
        {
            "campaignId": str(rival),
            "totalAuctions": 1,
            "totalBidsPlaced": 1,
            "averageWinRate": 0.0,
            "averageeCPM": 0.0,
        },
    ]
    assert [(part["hour"], part["totalAuctions"]) for part in await parts("hour")] == [
        ("2026-11-15T13:00:00Z", 1),
        ("2026-11-15T12:00:00Z", 2),
    ]
    answer = await admin.get(f"{PATH}/statistics/breakdown", params={"groupBy": "banner"})
    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"groupBy"}


async def test_auctions_are_filtered_by_campaign_and_outcome(admin: Client, pool: Pool) -> None:
    rival = CampaignId(uuid4())
    both = a_bid() + a_bid(campaign=rival, ecpm=5_000_000, outcome=LOST)
    contested, alone, nobody = an_auction(uuid4(), bids=both), an_auction(uuid4()), unsold()
    await apply_auctions(pool, contested, alone, nobody)

    async def found(**query: str) -> set[str]:
        listed = await read(admin, **query)
        total = await read(admin, f"{PATH}/statistics", **query)
        assert listed["totalCount"] == total["totalAuctions"]
        return set(ids_of(listed))

    assert await found(outcome="won") == {str(contested.auction_id), str(alone.auction_id)}
    assert await found(outcome="not_won") == {str(nobody.auction_id)}
    assert await found(campaignId=str(rival)) == {str(contested.auction_id)}
    assert await found(campaignId=str(rival), outcome="won") == set()
    assert await found(campaignId=str(rival), outcome="not_won") == {str(contested.auction_id)}
    assert await found(campaignId=str(CAMPAIGN), outcome="won") == await found(outcome="won")
    of_rival = await read(admin, f"{PATH}/statistics", campaignId=str(rival))
    assert (of_rival["averageWinRate"], of_rival["totalBidsPlaced"]) == (0.0, 1)


class Contest:
    """An auction between an own campaign and one of another advertiser."""

    def __init__(self, own: Json, other: Json) -> None:
        self.own = CampaignId(UUID(own["id"]))
        self.other = CampaignId(UUID(other["id"]))

    def won(self) -> AuctionEntry:
        return self._auction(winner=self.own, second=self.other)

    def lost(self) -> AuctionEntry:
        return self._auction(winner=self.other, second=self.own)

    def _auction(self, *, winner: CampaignId, second: CampaignId) -> AuctionEntry:
        bids = a_bid(campaign=winner) + a_bid(campaign=second, ecpm=7_000_000, outcome=LOST)
        removed = a_bid(campaign=self.other, outcome=REMOVED)
        return an_auction(uuid4(), winner=a_win(campaign_id=winner), bids=bids + removed)


@pytest.fixture
async def contest(admin: Client, advertiser: Client) -> Contest:
    return Contest(await advertiser.make_campaign(), await admin.make_campaign())


async def test_an_advertiser_sees_its_own_auctions_without_the_details_of_others(
    contest: Contest, advertiser: Client, pool: Pool
) -> None:
    won, lost = contest.won(), contest.lost()
    await apply_auctions(pool, won, lost, an_auction(uuid4()))

    page = await read(advertiser)
    own = await read(advertiser, f"{PATH}/{won.auction_id}")
    others = await read(advertiser, f"{PATH}/{lost.auction_id}")

    assert set(ids_of(page)) == {str(won.auction_id), str(lost.auction_id)}
    assert {item["userId"] for item in page["items"]} == {None}
    assert {item["finalPrice"] for item in page["items"]} == {7.01, None}
    assert (own["winningCampaignId"], own["finalPrice"], own["charge"]) == (str(contest.own), 7.01, 7.01)
    assert (others["winningCampaignId"], others["winningAdId"], others["winningeCPM"]) == (None, None, None)
    assert (others["context"], others["removed"]) == (None, {})
    hidden, shown = others["bids"]
    assert {name for name, value in hidden.items() if value is not None} == {"outcome"}
    assert (shown["campaignId"], shown["outcome"], shown["ecpm"]) == (str(contest.own), "lost", 7.0)
    assert str(contest.other) not in str(own) + str(others) + str(page)


async def test_an_advertisers_statistics_are_of_its_own_bids_and_wins(
    contest: Contest, advertiser: Client, pool: Pool
) -> None:
    await apply_auctions(pool, contest.won(), contest.lost(), contest.lost(), an_auction(uuid4()))

    figures = {"totalAuctions": 3, "averageWinRate": 33.3333, "averageeCPM": 9.0, "totalBidsPlaced": 3}
    assert await read(advertiser, f"{PATH}/statistics") == figures
    breakdown = await read(advertiser, f"{PATH}/statistics/breakdown", groupBy="campaign")
    [item] = breakdown["items"]
    assert item.pop("campaignName").startswith("Campaign ")
    assert item == {"campaignId": str(contest.own), **figures}
    by_type = await read(advertiser, f"{PATH}/statistics/breakdown", groupBy="placementType")
    assert by_type["items"] == [{"placementType": "feed", **figures}]


async def test_an_advertiser_without_campaigns_sees_no_auctions_and_no_users(
    advertiser: Client, pool: Pool
) -> None:
    await apply_auctions(pool, an_auction())

    assert (await read(advertiser))["totalCount"] == 0
    assert (await read(advertiser, f"{PATH}/statistics"))["totalAuctions"] == 0
    problem(await advertiser.get(f"{PATH}/{REQUEST}"), 404, "AUCTION_NOT_FOUND")
    problem(await advertiser.get(PATH, params={"userId": str(USER)}), 403, "FORBIDDEN")


async def test_only_an_admin_sees_for_whom_an_auction_was_held(
    control: ControlPlane, admin: Client, pool: Pool
) -> None:
    await apply_auctions(pool, an_auction())

    async with control.acting_as(Role.VIEWER) as viewer:
        [listed] = (await read(viewer))["items"]
        whole = await read(viewer, f"{PATH}/{REQUEST}")
        problem(await viewer.get(PATH, params={"userId": str(USER)}), 403, "FORBIDDEN")

    assert (listed["userId"], whole["userId"], whole["context"]) == (None, None, None)
    assert whole["bids"] == (await read(admin, f"{PATH}/{REQUEST}"))["bids"]
    assert (await read(admin))["items"][0]["userId"] == str(USER)


async def test_a_viewer_sees_all_and_a_publisher_nothing(
    control: ControlPlane, publisher: Client, pool: Pool
) -> None:
    await apply_auctions(pool, an_auction())

    async with control.acting_as(Role.VIEWER) as viewer:
        assert ids_of(await read(viewer)) == [str(REQUEST)]
    for path in (PATH, f"{PATH}/{REQUEST}", f"{PATH}/statistics"):
        problem(await publisher.get(path), 403, "FORBIDDEN")


async def test_auctions_of_an_erased_user_stay_without_the_user(admin: Client, pool: Pool) -> None:
    await apply_auctions(pool, an_auction(), an_auction(uuid4(), user_id=UNKNOWN_ID))
    kept = (await admin.get(f"/admin/privacy/users/{USER}")).json()
    assert kept["auctionCount"] == 1
    assert kept["auctions"] == [
        {
            "id": str(REQUEST),
            "placementType": "feed",
            "placementId": str(PLACEMENT),
            "auctionTime": "2026-11-15T12:00:00Z",
            "context": {"country": "FR"},
            "winningAdId": str(BANNER),
        }
    ]

    erased = (await admin.delete(f"/admin/privacy/users/{USER}")).json()

    counts = {"impressions": 0, "clicks": 0, "conversions": 0, "auctions": 1}
    assert erased == {"erasedAt": "2026-11-15T12:00:00Z", **counts}
    assert (await admin.get(f"/admin/privacy/users/{USER}")).json()["auctions"] == []
    auction = await read(admin, f"{PATH}/{REQUEST}")
    assert (auction["userId"], auction["context"], auction["finalPrice"]) == (None, None, 7.01)
    assert (await read(admin, f"{PATH}/statistics"))["totalAuctions"] == 2
    # Late auctions are stored without the user, too.
    await apply_auctions(pool, an_auction(uuid4()))
    assert (await read(admin, userId=str(USER)))["totalCount"] == 0


UNDER_FLOOR = a_bid(banner=OTHER_BANNER, bid=5_000_000, ecpm=5_000_000, outcome=REMOVED)
OF_FLOOR = (RemovedCandidates("floor", 1),)


async def test_a_lost_bid_has_the_amount_that_would_have_won(admin: Client, pool: Pool) -> None:
    bids = (
        a_bid()
        + a_bid(banner=OTHER_BANNER, bid=7_000_000, ecpm=7_000_000, outcome=LOST)
        + a_bid(banner=OTHER_BANNER, bid=300_000, is_per_click=True, ecpm=6_000_000, outcome=LOST)
        + a_bid(banner=OTHER_BANNER, bid=1_000_000, ecpm=1_000_000, outcome=REMOVED)
        + a_bid(banner=OTHER_BANNER, bid=20_000_000, ecpm=20_000_000, outcome=REMOVED)
        + a_bid(banner=OTHER_BANNER, bid=8_000_000, ecpm=8_000_000, outcome=REMOVED + 1)
    )
    removed = (RemovedCandidates("floor", 2), RemovedCandidates("targeting:country", 1))
    # The bid of 20.00 is for a placement with a higher floor than the winner's.
    floors = (BidsUnderFloor(Micros(2_000_000), b"\3"), BidsUnderFloor(Micros(50_000_000), b"\4"))
    await apply_auctions(pool, an_auction(bids=bids, removed=removed, floor=Micros(2_000_000), floors=floors))

    found = await read(admin, f"{PATH}/{REQUEST}")

    # One step over 9.00, also per click at a click rate of 2 %.
    assert [bid["wouldHaveToBid"] for bid in found["bids"]] == [None, 9.0001, 0.4501, 9.0001, 50.0, None]
    assert [bid["floorCpm"] for bid in found["bids"]] == [None, None, None, 2.0, 50.0, None]


async def test_a_bid_of_an_unsold_auction_has_its_floor(admin: Client, pool: Pool) -> None:
    auction = an_auction(
        winner=None,
        bid_count=0,
        bids=UNDER_FLOOR,
        removed=OF_FLOOR,
        floors=(BidsUnderFloor(Micros(6_000_000), b"\0"),),
    )
    await apply_auctions(pool, auction)

    [bid] = (await read(admin, f"{PATH}/{REQUEST}"))["bids"]

    assert (bid["floorCpm"], bid["wouldHaveToBid"]) == (6.0, 6.0)


async def test_a_bid_without_a_recorded_floor_has_no_winning_amount(admin: Client, pool: Pool) -> None:
    of_type = an_auction(uuid4(), winner=None, bid_count=0, bids=UNDER_FLOOR, removed=OF_FLOOR)
    of_one = an_auction(
        uuid4(),
        placement_id=PLACEMENT,
        winner=None,
        bid_count=0,
        bids=UNDER_FLOOR,
        removed=OF_FLOOR,
        floor=Micros(6_000_000),
    )
    won = an_auction(uuid4(), bids=a_bid() + UNDER_FLOOR, removed=OF_FLOOR)
    await apply_auctions(pool, of_type, of_one, won)

    amounts = [
        (await read(admin, f"{PATH}/{auction.auction_id}"))["bids"][-1]["wouldHaveToBid"]
        for auction in (of_type, of_one, won)
    ]

    # In an unsold auction for one placement, its floor holds for all bids.
    assert amounts == [None, 6.0, None]


async def test_a_bid_has_no_winning_amount_when_no_winner_could_be_reserved(
    admin: Client, pool: Pool
) -> None:
    bids = a_bid(outcome=LOST) + UNDER_FLOOR
    floors = (BidsUnderFloor(Micros(6_000_000), b"\1"),)
    await apply_auctions(
        pool, an_auction(winner=None, bid_count=1, bids=bids, removed=OF_FLOOR, floors=floors)
    )

    found = await read(admin, f"{PATH}/{REQUEST}")

    assert [bid["wouldHaveToBid"] for bid in found["bids"]] == [None, None]


async def test_accounts_learn_of_a_rivals_price_only_a_band(control: ControlPlane, pool: Pool) -> None:
    """Winners at 9.00 and at 6.10 look the same: the band up to 10.00."""
    told: list[Any] = []
    async with control.acting_as(Role.ADVERTISER) as advertiser:
        own = CampaignId(UUID((await advertiser.make_campaign())["id"]))
        for ecpm in (9_000_000, 6_100_000):
            auction = an_auction(
                uuid4(),
                winner=a_win(ecpm=Micros(ecpm)),
                bids=a_bid(campaign=CampaignId(uuid4()), ecpm=ecpm)
                + a_bid(campaign=own, ecpm=5_000_000, outcome=LOST),
            )
            await apply_auctions(pool, auction)
            found = await read(advertiser, f"{PATH}/{auction.auction_id}")
            told.append(found["bids"][-1]["wouldHaveToBid"])
            assert found["winningeCPM"] is None
            assert found["bids"][0]["ecpm"] is None

    assert told == [10.0, 10.0]


async def test_auctions_of_contextual_slots_are_found_by_page_by_slot_and_by_request(
    admin: Client, pool: Pool
) -> None:
    slot = await admin.make_placement(slug="aside")
    contextual = {"placement_type": "contextual", "winner": None, "page_url": "example.com/a"}
    ids = [derive_auction_id(REQUEST.bytes, number) for number in (0, 1)]
    await apply_auctions(
        pool,
        an_auction(ids[0], **contextual),
        an_auction(ids[1], **contextual, placement_id=UUID(slot["id"])),
        an_auction(uuid4(), **contextual | {"page_url": "example.com/b"}),
        an_auction(uuid4()),
    )
    of_page = {"pageUrl": "https://www.example.com/a?utm_source=mail"}

    assert set(ids_of(await read(admin, **of_page))) == set(map(str, ids))
    assert ids_of(await read(admin, **of_page, placement="aside")) == [str(ids[1])]
    assert set(ids_of(await read(admin, requestId=str(REQUEST)))) == set(map(str, ids))
    assert (await read(admin, f"{PATH}/{ids[1]}"))["pageUrl"] == "example.com/a"
    assert (await read(admin, f"{PATH}/statistics", **of_page))["totalAuctions"] == 2


async def test_statistics_by_type_have_contextual_slots(admin: Client, pool: Pool) -> None:
    await apply_auctions(pool, an_auction(uuid4(), placement_type="contextual"), an_auction())

    parts = (await read(admin, f"{PATH}/statistics/breakdown", groupBy="placementType"))["items"]

    assert {one["placementType"]: one["totalAuctions"] for one in parts} == {"contextual": 1, "feed": 1}
    assert (await read(admin, f"{PATH}/statistics", placementType="contextual"))["totalAuctions"] == 1


async def test_what_is_no_address_of_a_page_is_refused(admin: Client) -> None:
    answer = await admin.get(PATH, params={"pageUrl": "ftp://example.com/a"})

    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"pageUrl"}


async def test_a_bid_under_the_floor_of_a_slot_is_told_what_it_would_have_to_bid(
    admin: Client, pool: Pool
) -> None:
    held = an_auction(
        placement_type="contextual",
        winner=None,
        bid_count=0,
        bids=a_bid(outcome=REMOVED),
        removed=(RemovedCandidates("below_floor", 1),),
        floors=(BidsUnderFloor(Micros(20_000_000), b"\x00"),),
    )
    await apply_auctions(pool, held)

    [bid] = (await read(admin, f"{PATH}/{held.auction_id}"))["bids"]

    assert (bid["removedBy"], bid["floorCpm"]) == ("below_floor", 20)
    assert bid["wouldHaveToBid"] is not None


async def test_an_advertiser_filters_by_its_own_campaigns_only(
    contest: Contest, advertiser: Client, pool: Pool
) -> None:
    won, lost = contest.won(), contest.lost()
    await apply_auctions(pool, won, lost)

    own = {"campaignId": str(contest.own)}
    assert ids_of(await read(advertiser, **own, outcome="won")) == [str(won.auction_id)]
    assert ids_of(await read(advertiser, **own, outcome="not_won")) == [str(lost.auction_id)]
    assert ids_of(await read(advertiser, outcome="not_won")) == [str(lost.auction_id)]
    assert ids_of(await read(advertiser, campaignId=str(contest.other))) == []
