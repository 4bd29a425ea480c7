"""What direct delivery is asked, and what it has chosen."""

from collections.abc import Sequence
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from adloom.serving.eligibility.placement_state import PlacementState, RenderedOffer
from adloom.serving.index.index import IndexedPlacement
from adloom.targeting.context import Context

PLACEMENTS_A_PAGE_MAX: Final = 20


class ChosenOffer(msgspec.Struct, frozen=True):
    """The offer in the first slot of a placement, with its token, if there is one."""

    placement: IndexedPlacement
    device: str | None
    offer: RenderedOffer | None = None
    token: bytes = b""


class FilledPlacement(msgspec.Struct, frozen=True, gc=False):
    """The answer for one placement of a page, and what it was decided from."""

    body: bytes
    state: PlacementState
    context: Context
    offers: Sequence[RenderedOffer]


class ServePageRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The placements of a page, and what is known about its visitor."""

    placements: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=100)]],
        msgspec.Meta(min_length=1, max_length=PLACEMENTS_A_PAGE_MAX),
    ]
    context: dict[str, Any] = {}
    user_id: UUID | None = None
