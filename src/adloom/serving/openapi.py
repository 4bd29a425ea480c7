"""The delivery plane as OpenAPI. Its routes are not the framework's; bodies are described by their structs."""

from typing import Annotated, Any, Final, Literal, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Meta

from adloom.events.ingest.accept import ClickRequest, ImpressionRequest
from adloom.events.ingest.batch import EVENTS_MAX, BatchAnswer
from adloom.events.ingest.conversion_reports import ConversionRequest
from adloom.events.log.event import Moment
from adloom.serving.auction.events import AdEvent
from adloom.serving.auction.request import ServeRequest
from adloom.serving.contextual.batch_question import SlotsRequest
from adloom.serving.contextual.classify_page import SentText
from adloom.serving.direct.answer import AnsweredPlacement, ShownBanner, Uri
from adloom.serving.direct.model import ServePageRequest
from adloom.serving.tag.page_slots import PageSlotsRequest
from adloom.serving.tag.preview import PreviewAnswer, PreviewRequest

Json: TypeAlias = dict[str, Any]

WORD: Final = Meta(extra_json_schema={"type": "string"})

REF: Final = "#/components/schemas/{name}"
SLUG: Final[Json] = {
    "name": "slug",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "maxLength": 100},
}
TOKEN: Final[Json] = {"name": "token", "in": "path", "required": True, "schema": {"type": "string"}}
NAME: Final[Json] = TOKEN | {"name": "name"}
FILE: Final[Json] = TOKEN | {"name": "file"}
# Without a type: generators of clients know no answers that are images.
GIF: Final = "A transparent GIF of 43 bytes."


class VisitorContext(msgspec.Struct, rename="camel"):
    """What a request may say about its visitor, instead of what headers say."""

    device: Annotated[Literal["mobile", "tablet", "desktop"], WORD] | None = None
    country: Annotated[str, Meta(min_length=2, max_length=2)] | None = None
    language: str | None = None
    logged_in: bool | None = None
    new_visitor: bool | None = None
    referrer: str | None = None
    segment: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    user_id: UUID | None = None


class ServedBanner(ShownBanner, kw_only=True, rename="camel"):
    """An offer, with its signed token."""

    campaign_id: UUID
    display_order: int
    is_fallback: bool
    tracking_token: str
    impression_url: Uri
    click_url: Uri


class ServedAnswer(msgspec.Struct, rename="camel"):
    """What fills a placement."""

    placement: AnsweredPlacement
    banners: list[ServedBanner]
    request_id: UUID
    served_at: Moment


class ServedPage(msgspec.Struct, rename="camel"):
    """An answer or a problem for each slug."""

    results: dict[str, ServedAnswer]
    request_id: UUID
    served_at: Moment


class AuctionedAd(msgspec.Struct, rename="camel"):
    """The winner of an auction, with its signed token and its price."""

    ad_id: UUID
    campaign_id: UUID
    ad_format: Annotated[Literal["single_image", "video"], WORD]
    headline: str
    primary_text: str | None
    call_to_action: str | None
    creative_url: Uri
    destination_url: Uri | None
    final_price: Annotated[float, Meta(description="Per thousand impressions.")]
    served_at: Moment
    auction_id: UUID
    tracking_token: str
    impression_url: Uri
    click_url: Uri


class SlotCategory(msgspec.Struct):
    """The category that an ad was chosen by."""

    id: str
    name: str


class SlotAd(msgspec.Struct, rename="camel"):
    """An ad in a contextual slot; `category` is null for filler."""

    slot: str
    banner_id: UUID
    campaign_id: UUID
    asset_url: str
    mime: str
    width: int | None
    height: int | None
    headline: str | None
    primary_text: str | None
    call_to_action: str | None
    destination_url: str | None
    category: SlotCategory | None
    request_id: UUID
    version: int
    served_at: Moment
    tracking_token: str
    impression_url: str
    click_url: str


class ServedSlots(msgspec.Struct, rename="camel"):
    """What is known of a page, and what fills each of its contextual slots."""

    page: Annotated[Literal["known", "stale", "unknown"], WORD]
    reclassify_in_ms: Annotated[
        int, Meta(description="When the page's text is wanted; now, if it is 0 or less.")
    ]
    slots: dict[str, None]
    request_id: UUID
    served_at: Moment


class KnownPage(msgspec.Struct, rename="camel"):
    """What is known of a page, by the address that it is known by."""

    url: Uri
    state: Annotated[Literal["known", "stale", "unknown"], WORD]
    reclassify_in_ms: Annotated[
        int,
        Meta(
            description="When the page's text is wanted from its visitor's browser; now, if it is 0 or less."
        ),
    ]


class FilledPageSlot(ServedAnswer, rename="camel", kw_only=True):
    """What fills a slot of a page, in the form of direct delivery."""

    delivery: Annotated[Literal["direct", "auction", "contextual"], WORD]
    reason: Annotated[str | None, Meta(description="Why it is empty, such as `no_demand` or `targeting`.")]


class ServedPageSlots(msgspec.Struct, rename="camel"):
    """What is known of a page where a slot depends on it, and what fills each slot."""

    page: KnownPage | None
    slots: dict[str, None]
    request_id: UUID
    served_at: Moment


class TextAnswer(msgspec.Struct):
    """Whether a text was taken, and why not: `fresh` or already `queued`."""

    accepted: bool
    reason: Annotated[Literal["fresh", "queued"], WORD] | None = None


class ReportAccepted(msgspec.Struct):
    """The report is in the event log."""

    accepted: bool


class BatchImpression(ImpressionRequest, frozen=True, kw_only=True, rename="camel", tag="impression"):
    """An impression in a batch."""


class BatchClick(ClickRequest, frozen=True, kw_only=True, rename="camel", tag="click"):
    """A click in a batch."""


class BatchConversion(ConversionRequest, frozen=True, kw_only=True, rename="camel", tag="conversion"):
    """A conversion in a batch."""


class BatchBody(msgspec.Struct):
    """Up to 500 impressions, clicks and conversions."""

    events: Annotated[list[BatchImpression | BatchClick | BatchConversion], Meta(max_length=EVENTS_MAX)]


STRUCTS: Final = (
    VisitorContext, ServePageRequest, ServedAnswer, ServedPage, ServeRequest, AuctionedAd, AdEvent, ReportAccepted,
    ImpressionRequest, ClickRequest, ConversionRequest, BatchBody, BatchAnswer, SlotsRequest, SlotAd, ServedSlots, SentText, TextAnswer,
    PageSlotsRequest, FilledPageSlot, ServedPageSlots, PreviewRequest, PreviewAnswer,
)  # fmt: skip


def add_delivery_routes(document: Json) -> None:
    """Add every route of the delivery plane to a document, and the schemas of their bodies."""
    schemas = _build_schemas()
    assert not schemas.keys() & document["components"]["schemas"].keys(), (
        "schemas of both planes need names of their own"
    )
    paths = _build_paths(schemas["VisitorContext"]["properties"])
    document["paths"].update(paths)
    document["components"]["schemas"].update(schemas)


def _build_schemas() -> dict[str, Json]:
    _, schemas = msgspec.json.schema_components(STRUCTS, ref_template=REF)
    problem, answer = ({"$ref": REF.format(name=name)} for name in ("Problem", "ServedAnswer"))
    schemas["ServedPage"]["properties"]["results"]["additionalProperties"] = {"anyOf": [answer, problem]}
    for body in ("ServePageRequest", "SlotsRequest", "PageSlotsRequest"):
        schemas[body]["properties"]["context"] = {"$ref": REF.format(name="VisitorContext")}
    schemas["ServedSlots"]["properties"]["slots"]["additionalProperties"] = {
        "anyOf": [{"$ref": REF.format(name="SlotAd")}, problem, {"type": "null"}]
    }
    schemas["ServedPageSlots"]["properties"]["slots"]["additionalProperties"] = {
        "anyOf": [{"$ref": REF.format(name="FilledPageSlot")}, problem]
    }
    auction = schemas["ServeRequest"]["properties"]
    auction["userId"]["description"] = "All zeros where nobody knows; then ads with caps are withheld."
    auction["placementType"]["default"] = "feed"
    auction["placement"]["description"] = "One placement, instead of all of a type."
    auction["userContext"]["anyOf"][0]["additionalProperties"] = {"type": "string"}
    auction["userContext"]["description"] = (
        "Instead of what headers say: device, country, language, loginState, newVisitor, referrerDomain, segment, "
        "lastPurchaseDays."
    )
    token = schemas["AdEvent"]["properties"]["trackingToken"]
    token["description"] = "Of the offer; without it nothing is billed."
    return schemas


def _build_paths(context: Json) -> dict[str, Json]:
    query = [
        {
            "name": name,
            "in": "query",
            "schema": schema["anyOf"][0],
            "description": "Instead of what headers say.",
        }
        for name, schema in context.items()
    ]
    script: Json = {
        "200": _describe_answer("The script.", {"text/javascript": {}}),
        "304": _describe_answer("It is what you have."),
    }
    redirect: Json = {"302": _describe_answer("On to the banner's destination.")}
    again = "is accepted and counts once."
    # fmt: off
    return {
        "/banners/serve/{slug}": _get("serve_placement", "Which ads fill this placement now, for this visitor?",
            _describe_json(200, "ServedAnswer"), 400, 404, 429, 503, parameters=[SLUG, *query]),
        "/banners/serve": _post("serve_placements", "Which ads fill the placements of this page? No banner is there twice while another could be.",
            "ServePageRequest", _describe_json(200, "ServedPage"), 400, 413, 429, 503),
        "/banners/events/impression": _post("report_impression", f"Report one impression; the same correlation id again {again}",
            "ImpressionRequest", _describe_json(202, "ReportAccepted"), 400, 403, 404, 413, 429, 503),
        "/banners/events/click": _post("report_click", f"Report one click; the same correlation id again {again}",
            "ClickRequest", _describe_json(202, "ReportAccepted"), 400, 403, 404, 413, 429, 503),
        "/banners/events/batch": _post("report_batch", "Report up to 500 impressions, clicks and conversions; those that are refused are named, and the others go on.",
            "BatchBody", _describe_json(202, "BatchAnswer"), 400, 413, 429, 503),
        "/events/conversion": _post("report_conversion", f"Report what a visitor did after a click; the same correlation id again {again}",
            "ConversionRequest", _describe_json(202, "ReportAccepted"), 400, 401, 403, 413, 429, 503),
        "/i/{token}": _get("load_impression_pixel", "Report the impression of an offer by loading an image.",
            {"200": _describe_answer(GIF)}, 403, 429, 503, parameters=[TOKEN]),
        "/c/{token}": _get("follow_click", "Report the click on an offer and go where its banner leads.",
            redirect, 403, 404, 429, parameters=[TOKEN]),
        "/api/v1/ads/serve": _post("serve_auction", "Which ad wins the auction for this user? The winner pays a cent more than the second bid.",
            "ServeRequest", _describe_json(200, "AuctionedAd") | {"204": _describe_answer("Nobody may be shown, or bids as much as the floor.")},
            400, 404, 413, 429, 503),
        "/api/v1/ads/events/impression": _post("report_ad_impression", f"Report one impression of an ad; one of the same offer again {again}",
            "AdEvent", _describe_json(202, "ReportAccepted"), 400, 403, 404, 413, 429, 503),
        "/api/v1/ads/events/click": _post("report_ad_click", f"Report one click of an ad; one of the same offer again {again}",
            "AdEvent", _describe_json(202, "ReportAccepted"), 400, 403, 404, 413, 429, 503),
        **_build_contextual_paths(query),
        "/p/{file}": _get("load_file", "An uploaded file, or a part of it; what is at an address never changes.",
            {"200": _describe_answer("The file."), "206": _describe_answer("A part of it."), "304": _describe_answer("You have it.")},
            404, 503, parameters=[FILE]),
        "/tag.js": _get("load_tag", "Fills the placements of a publisher's page; its newest version.", script),
        "/tag-{name}.js": _get("load_tag_version", "One version of the tag, which caches may keep for good.", script, parameters=[NAME]),
        "/tag-debug.js": _get("load_tag_debug", "Shows on a page what each of its slots got, and why; the tag loads it for `?adloom-debug`.", script),
        "/crawler": _get("show_crawler", "What the crawler is, for the owners of sites that it reads.",
            {"200": _describe_answer("The page.", {"text/html": {}})}),
        "/serve/{slug}.html": _get("show_frame", "A page with nothing but this placement, for frames.",
            {"200": _describe_answer("The page.", {"text/html": {}})}, 400, 404, 429, parameters=[SLUG]),
        "/serve/{slug}.img": _get("show_image", "The image of the ad that fills this placement, for pages without script; to fetch it counts it.",
            {"200": _describe_answer(f"No ad. {GIF}"), "302": _describe_answer("On to the image.")},
            400, 404, 429, 503, parameters=[SLUG]),
        "/serve/{slug}.go": _get("follow_image", "Report a click on the image of this placement and go where its ad leads; nobody pays for it.",
            redirect, 400, 404, 429, parameters=[SLUG]),
    }
    # fmt: on


def _build_contextual_paths(query: list[Json]) -> Json:
    # fmt: off
    return {
        "/v1/serve": _get("serve_slot", "Which ad fills this contextual slot of this page?",
            _describe_json(200, "SlotAd") | {"204": _describe_answer("No ad; the headers Adloom-Page and Adloom-Reason say why.")},
            400, 403, 404, 414, 429, 503, parameters=[
                {"name": "slot", "in": "query", "required": True, "schema": {"type": "string", "maxLength": 100}},
                {"name": "url", "in": "query", "required": True, "schema": {"type": "string"}},
                *query,
            ]),
        "/v1/serve/batch": _post("serve_slots", "What is known of this page, and which ads fill its contextual slots?",
            "SlotsRequest", _describe_json(200, "ServedSlots"), 400, 403, 413, 429, 503),
        "/v1/serve/page": _post("serve_page", "Which ads fill the slots of this page, whatever each is filled by? For the tag.",
            "PageSlotsRequest", _describe_json(200, "ServedPageSlots"), 400, 413, 429, 503),
        "/v1/classify-page": _post("send_page_text", "Give the text of a page of a verified site; the Origin (or Referer) must be of the page's host.",
            "SentText", _describe_json(202, "TextAnswer") | _describe_json(200, "TextAnswer", "It is not needed: the page is known, or being classified."),
            400, 403, 413, 429, 503),
        "/v1/preview": _post("show_preview", "Which banner does this signed link show, and in which slot? For the tag; nothing of it counts.",
            "PreviewRequest", _describe_json(200, "PreviewAnswer"), 400, 403, 404, 409, 413, 429, 503),
    }
    # fmt: on


def _get(
    name: str, description: str, answers: Json, *problems: int, parameters: list[Json] | None = None
) -> Json:
    operation = _describe_operation(name, description, answers, problems)
    return {"get": operation | {"parameters": parameters or []}}


def _post(name: str, description: str, body: str, answers: Json, *problems: int) -> Json:
    content = {"application/json": {"schema": {"$ref": REF.format(name=body)}}}
    operation = _describe_operation(name, description, answers, problems)
    return {"post": operation | {"requestBody": {"required": True, "content": content}}}


def _describe_operation(name: str, description: str, answers: Json, problems: tuple[int, ...]) -> Json:
    """Describe the one operation of a path; clients that are made from the document name a function by it."""
    content: Json = {"application/problem+json": {"schema": {"$ref": REF.format(name="Problem")}}}
    refused = {str(status): _describe_answer("What to change.", content) for status in problems}
    return {
        "operationId": name,
        "summary": name.replace("_", " ").title(),
        "description": description,
        "tags": ["delivery"],
        "security": [],  # No token is needed here: the document's own default is the control plane's.
        "responses": answers | refused,
    }


def _describe_json(status: int, schema: str, description: str = "") -> Json:
    content: Json = {"application/json": {"schema": {"$ref": REF.format(name=schema)}}}
    return {str(status): _describe_answer(description or ANSWERS[schema], content)}


def _describe_answer(description: str, content: Json | None = None) -> Json:
    return {"description": description} | ({"content": content} if content else {})


ANSWERS: Final = {
    "ServedAnswer": "The offers, each with its signed token.",
    "ServedPage": "An answer or a problem for each slug.",
    "AuctionedAd": "The ad, with its signed token and its price.",
    "ReportAccepted": "It is in the event log.",
    "ServedSlots": "The state of the page, and an ad, null or a problem for each slug.",
    "SlotAd": "The ad.",
    "ServedPageSlots": "What is known of the page where a slot depends on it, and an answer or a problem for each slug.",
    "PreviewAnswer": "The slot, with the banner in it.",
    "TextAnswer": "The text waits to be classified.",
    "BatchAnswer": "All that were accepted are in the event log.",
}
