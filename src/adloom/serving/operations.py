"""The names of delivery's routes in the API's description, which clients that are made from it have for functions."""

from typing import Any, Final

OPERATION_IDS: Final = {
    "/banners/serve/{slug}": "serve_placement",
    "/banners/serve": "serve_placements",
    "/banners/events/impression": "report_impression",
    "/banners/events/click": "report_click",
    "/banners/events/batch": "report_batch",
    "/events/conversion": "report_conversion",
    "/i/{token}": "load_impression_pixel",
    "/c/{token}": "follow_click",
    "/api/v1/ads/serve": "serve_auction",
    "/api/v1/ads/events/impression": "report_ad_impression",
    "/api/v1/ads/events/click": "report_ad_click",
    "/v1/serve": "serve_slot",
    "/v1/serve/batch": "serve_slots",
    "/v1/serve/page": "serve_page",
    "/v1/classify-page": "send_page_text",
    "/v1/preview": "show_preview",
    "/p/{file}": "load_file",
    "/tag.js": "load_tag",
    "/tag-{name}.js": "load_tag_version",
    "/tag-debug.js": "load_tag_debug",
    "/crawler": "show_crawler",
    "/serve/{slug}.html": "show_frame",
    "/serve/{slug}.img": "show_image",
    "/serve/{slug}.go": "follow_image",
}


def name_operations(paths: dict[str, dict[str, Any]]) -> None:
    """Name the one operation of each path; its sentence becomes its description."""
    for path, item in paths.items():
        [operation] = item.values()
        name = OPERATION_IDS[path]
        operation["description"] = operation.pop("summary")
        operation |= {"operationId": name, "summary": name.replace("_", " ").title()}
