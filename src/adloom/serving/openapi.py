"""The delivery plane as OpenAPI: its routes are not a framework's, so they are described by hand."""

from typing import TypeAlias

Json: TypeAlias = dict[str, object]

UUID: Json = {"type": "string", "format": "uuid"}
TEXT: Json = {"type": "string"}
ADDRESS: Json = {"type": "string", "format": "uri"}
MOMENT: Json = {"type": "string", "format": "date-time"}
WHOLE: Json = {"type": "integer"}
TRUTH: Json = {"type": "boolean"}
SLUG: Json = {"type": "string", "maxLength": 100}
CONTEXT: dict[str, Json] = {
    "device": {"type": "string", "enum": ["mobile", "tablet", "desktop"]},
    "country": {"type": "string", "minLength": 2, "maxLength": 2},
    "language": TEXT,
    "loggedIn": TRUTH,
    "newVisitor": TRUTH,
    "referrer": TEXT,
    "segment": {"type": "string", "minLength": 1, "maxLength": 100},
    "userId": UUID,
}


def delivery_paths() -> dict[str, Json]:
    """Describe every route of the delivery plane."""
    return {
        "/banners/serve/{slug}": {"get": _serve()},
        "/banners/serve": {"post": _serve_page()},
        "/banners/events/impression": {"post": _event("impression", {"referrerUrl": ADDRESS})},
        "/banners/events/click": {"post": _event("click", {"destinationUrl": ADDRESS})},
        "/banners/events/batch": {"post": _batch()},
        "/i/{token}": {"get": _pixel()},
        "/c/{token}": {"get": _redirect()},
        "/api/v1/ads/serve": {"post": _serve_ad()},
        "/api/v1/ads/events/impression": {"post": _ad_event("impression")},
        "/api/v1/ads/events/click": {"post": _ad_event("click")},
        "/tag.js": {"get": _script("Fills the placements of a publisher's page; its newest version.")},
        "/tag-{name}.js": {"get": _script("One version of the tag, which caches may keep for good.", "name")},
        "/serve/{slug}.html": {"get": _frame()},
        "/serve/{slug}.img": {"get": _image()},
        "/serve/{slug}.go": {"get": _link()},
    }


def _serve() -> Json:
    return _operation(
        "Which ads fill this placement, now, for this reader?",
        parameters=[
            _in_path("slug", SLUG),
            *(
                {"name": name, "in": "query", "schema": schema, "description": "Instead of what headers say."}
                for name, schema in CONTEXT.items()
            ),
        ],
        responses={
            "200": _json("The offers, each with its signed token.", SERVED),
            **_problems("400", "404", "429", "503"),
        },
    )


def _serve_page() -> Json:
    body = _object(
        {
            "placements": {"type": "array", "items": SLUG, "minItems": 1, "maxItems": 20},
            "context": _object({name: _or_null(schema) for name, schema in CONTEXT.items()}, required=[]),
            "userId": _or_null(UUID),
        },
        required=["placements"],
    )
    problem: Json = {"$ref": "#/components/schemas/Problem"}
    page = _all_of(
        {
            "results": {"type": "object", "additionalProperties": {"anyOf": [SERVED, problem]}},
            "requestId": UUID,
            "servedAt": MOMENT,
        }
    )
    return _operation(
        "Which ads fill the placements of this page? No banner is there twice while another could be.",
        requestBody={"required": True, "content": {"application/json": {"schema": body}}},
        responses={
            "200": _json("An answer or a problem for each slug.", page),
            **_problems("400", "413", "429", "503"),
        },
    )


def _serve_ad() -> Json:
    known = "device, country, language, loginState, newVisitor, referrerDomain, segment, lastPurchaseDays"
    body = _object(
        {
            "userId": {
                **UUID,
                "description": "All zeros where nobody knows; then ads with caps are withheld.",
            },
            "placementType": _or_null({"type": "string", "maxLength": 50, "default": "feed"}),
            "placement": _or_null({**SLUG, "description": "One placement, instead of all of a type."}),
            "userContext": _or_null(
                {
                    "type": "object",
                    "additionalProperties": TEXT,
                    "maxProperties": 64,
                    "description": f"Instead of what headers say: {known}.",
                }
            ),
        },
        required=["userId"],
    )
    return _operation(
        "Which ad wins the auction for this user? The winner pays a cent more than the second bid.",
        requestBody={"required": True, "content": {"application/json": {"schema": body}}},
        responses={
            "200": _json("The ad, with its signed token and its price.", AD),
            "204": {"description": "Nobody may be shown, or bids as much as the floor."},
            **_problems("400", "404", "413", "429", "503"),
        },
    )


def _ad_event(kind: str) -> Json:
    body = _object(
        {
            "adId": UUID,
            "userId": UUID,
            "timestamp": MOMENT,
            "correlationId": {"type": "string", "minLength": 1, "maxLength": 128},
            "trackingToken": {"type": "string", "description": "Of the offer; without it nothing is billed."},
        },
        required=["adId", "userId"],
    )
    accepted = _object({"accepted": TRUTH}, required=["accepted"])
    return _operation(
        f"Report one {kind} of an ad; one of the same offer again is accepted and counts once.",
        requestBody={"required": True, "content": {"application/json": {"schema": body}}},
        responses={
            "202": _json("It is in the ledger.", accepted),
            **_problems("400", "403", "404", "413", "429", "503"),
        },
    )


def _event(kind: str, extra: dict[str, Json]) -> Json:
    accepted = _object({"accepted": TRUTH}, required=["accepted"])
    return _operation(
        f"Report one {kind}; the same correlation id again is accepted and counts once.",
        requestBody={"required": True, "content": {"application/json": {"schema": _report(extra)}}},
        responses={
            "202": _json("It is in the ledger.", accepted),
            **_problems("400", "403", "404", "413", "429", "503"),
        },
    )


def _batch() -> Json:
    kinds: list[Json] = [
        _report({"type": {"const": "impression"}, "referrerUrl": ADDRESS}, "type"),
        _report({"type": {"const": "click"}, "destinationUrl": ADDRESS}, "type"),
    ]
    events: Json = {"type": "array", "items": {"oneOf": kinds}, "maxItems": 500}
    rejected = _all_of({"index": WHOLE, "errorCode": TEXT, "message": TEXT})
    outcome = _all_of({"accepted": WHOLE, "rejected": {"type": "array", "items": rejected}})
    return _operation(
        "Report up to 500 impressions and clicks; those that are refused are named, and the others go on.",
        requestBody={
            "required": True,
            "content": {"application/json": {"schema": _object({"events": events}, required=["events"])}},
        },
        responses={
            "202": _json("All that were accepted are in the ledger.", outcome),
            **_problems("400", "413", "429", "503"),
        },
    )


def _report(extra: dict[str, Json], *required: str) -> Json:
    fields: dict[str, Json] = {
        "correlationId": {"type": "string", "minLength": 1, "maxLength": 128},
        "bannerId": UUID,
        "placementId": UUID,
        "campaignId": UUID,
        "sessionId": {"type": "string", "maxLength": 128},
        "userId": UUID,
        "deviceType": {"type": "string", "maxLength": 20},
        "countryCode": {"type": "string", "minLength": 2, "maxLength": 2},
        "pageUrl": ADDRESS,
        "occurredAt": MOMENT,
        "trackingToken": TEXT,
        **extra,
    }
    return _object(fields, required=["correlationId", "bannerId", "placementId", *required])


def _pixel() -> Json:
    image: Json = {"description": "A transparent GIF of 43 bytes.", "content": {"image/gif": {}}}
    return _operation(
        "Report the impression of an offer by loading an image.",
        parameters=[_in_path("token", TEXT)],
        responses={"200": image, **_problems("403", "429", "503")},
    )


def _redirect() -> Json:
    return _operation(
        "Report the click on an offer and go where its banner leads.",
        parameters=[_in_path("token", TEXT)],
        responses={
            "302": {"description": "On to the banner's destination."},
            **_problems("403", "404", "429"),
        },
    )


def _script(summary: str, *names: str) -> Json:
    found: Json = {"description": "The script.", "content": {"text/javascript": {}}}
    return _operation(
        summary,
        parameters=[_in_path(name, TEXT) for name in names],
        responses={"200": found, "304": {"description": "It is what you have."}},
    )


def _frame() -> Json:
    page: Json = {"description": "The page.", "content": {"text/html": {}}}
    return _operation(
        "A page with nothing but this placement, for frames.",
        parameters=[_in_path("slug", SLUG)],
        responses={"200": page, **_problems("400", "404", "429")},
    )


def _image() -> Json:
    nothing: Json = {"description": "No ad: a transparent GIF of 43 bytes.", "content": {"image/gif": {}}}
    return _operation(
        "The image of the ad that fills this placement, for pages without script; to fetch it counts it.",
        parameters=[_in_path("slug", SLUG)],
        responses={
            "200": nothing,
            "302": {"description": "On to the image."},
            **_problems("400", "404", "429", "503"),
        },
    )


def _link() -> Json:
    return _operation(
        "Report a click on the image of this placement and go where its ad leads; nobody pays for it.",
        parameters=[_in_path("slug", SLUG)],
        responses={
            "302": {"description": "On to the banner's destination."},
            **_problems("400", "404", "429"),
        },
    )


def _operation(summary: str, **parts: object) -> Json:
    # No token is needed here: the document's own default is the control plane's.
    return {"summary": summary, "tags": ["delivery"], "security": [], **parts}


def _in_path(name: str, schema: Json) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _json(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _problems(*statuses: str) -> dict[str, Json]:
    schema = {"$ref": "#/components/schemas/Problem"}
    content: Json = {"application/problem+json": {"schema": schema}}
    return {status: {"description": "What to change.", "content": content} for status in statuses}


def _object(properties: dict[str, Json], *, required: list[str]) -> Json:
    return {"type": "object", "properties": properties, "required": required}


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def _all_of(properties: dict[str, Json]) -> Json:
    return _object(properties, required=list(properties))


SERVED = _all_of(
    {
        "placement": _all_of(
            {
                "id": UUID,
                "slug": TEXT,
                "label": TEXT,
                "layoutType": TEXT,
                "maxBanners": WHOLE,
                "fallbackPlaceholderUrl": _or_null(ADDRESS),
            }
        ),
        "banners": {
            "type": "array",
            "items": _all_of(
                {
                    "id": UUID,
                    "campaignId": UUID,
                    "title": TEXT,
                    "headline": _or_null(TEXT),
                    "subheadline": _or_null(TEXT),
                    "description": _or_null(TEXT),
                    "primaryImageUrl": ADDRESS,
                    "primaryImageAlt": _or_null(TEXT),
                    "mobileImageUrl": _or_null(ADDRESS),
                    "videoUrl": _or_null(ADDRESS),
                    "mediaVariants": {"type": "object", "additionalProperties": TEXT},
                    "ctaLabel": _or_null(TEXT),
                    "ctaUrl": _or_null(ADDRESS),
                    "ctaOpenNewTab": TRUTH,
                    "bgColor": _or_null(TEXT),
                    "displayOrder": WHOLE,
                    "isFallback": TRUTH,
                    "transitionDurationMs": _or_null(WHOLE),
                    "trackingToken": TEXT,
                    "impressionUrl": ADDRESS,
                    "clickUrl": ADDRESS,
                }
            ),
        },
        "requestId": UUID,
        "servedAt": MOMENT,
    }
)

AD = _all_of(
    {
        "adId": UUID,
        "campaignId": UUID,
        "adFormat": {"type": "string", "enum": ["single_image", "video"]},
        "headline": TEXT,
        "primaryText": _or_null(TEXT),
        "callToAction": _or_null(TEXT),
        "creativeUrl": ADDRESS,
        "destinationUrl": _or_null(ADDRESS),
        "finalPrice": {"type": "number", "description": "Per thousand impressions."},
        "servedAt": MOMENT,
        "auctionId": UUID,
        "trackingToken": TEXT,
        "impressionUrl": ADDRESS,
        "clickUrl": ADDRESS,
    }
)
