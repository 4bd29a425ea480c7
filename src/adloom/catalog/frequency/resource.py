"""Frequency caps, declared. They hang on a banner: its owner owns them, and their change is one of it."""

from adloom.catalog.banner.resource import banners
from adloom.catalog.frequency.model import FrequencyCap, FrequencyCapExistsError, FrequencyCapNotFoundError
from adloom.resource.changes import IndexedNoun
from adloom.resource.resource import Resource
from adloom.resource.table import ADVERTISER

frequency_caps = Resource(
    struct=FrequencyCap,
    name="cap",
    noun="frequency_cap",
    path="/api/v1/admin/frequency/caps",
    tag="frequency caps",
    table_name="frequency_caps",
    not_found=FrequencyCapNotFoundError,
    owner=ADVERTISER,
    references={"banner_id": banners},
    parents=("banner_id",),
    touches=(IndexedNoun.BANNER, "banner_id"),
    docs={
        "body": "A new cap of a banner.",
        "answer": "A cap.",
        "create": "Add a cap to an ad; it may have several, one for each window.",
        "read": "Read a cap.",
        "delete": "Remove a cap.",
    },
    taken=lambda cap: FrequencyCapExistsError(
        f"The ad has a cap for the window {cap.window} already. Remove it first."
    ),
    outlives_parent=True,
    list_name="frequencyCaps",
    unique_in_parent="window",
)
