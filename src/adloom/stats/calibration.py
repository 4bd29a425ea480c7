"""How well predicted click rates agree with clicks, over HTTP."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from adloom.auction.calibration import CalibrationReport, CalibrationSums
from adloom.core.errors import ForbiddenError
from adloom.events.ctr.store import read_calibrations
from adloom.runtime.http.api.dependencies import CurrentCaller, Database, make_router
from adloom.runtime.http.api.shapes import Answer


class DecileAnswer(Answer):
    """A tenth of the impressions; older ones weigh less, so the figures are no whole numbers."""

    impressions: float
    predicted_clicks: float
    clicks: float
    predicted_ctr: Annotated[float, Field(description="Predicted clicks by impressions.")]
    ctr: float


class ScoringCalibration(DecileAnswer):
    """How one way of predicting did: what it predicted for auctions that were seen, and what was clicked."""

    scoring: Annotated[str, Field(description="`learned` or `heuristic`.")]
    ratio: Annotated[
        float | None, Field(description="Predicted clicks by counted ones; null without clicks.")
    ]
    is_far_off: Annotated[
        bool, Field(description="Whether it is off by more than a fifth, and not by chance.")
    ]
    deciles: Annotated[list[DecileAnswer], Field(description="From the lowest predictions to the highest.")]


class CalibrationAnswer(Answer):
    """Both ways of predicting, as of the last time that something was learned."""

    learned_at: datetime | None
    items: list[ScoringCalibration]


router = make_router("/admin/stats", "statistics", 401, 403, 503)


@router.get("/calibration")
async def read_calibration(caller: CurrentCaller, pool: Database) -> CalibrationAnswer:
    """Compare predicted clicks with those that came, over the last 70,000 impressions of auctions or so."""
    if not caller.sees_all:
        raise ForbiddenError("Only admins and viewers see how well clicks are predicted.")
    learned_at, reports = await read_calibrations(pool)
    return CalibrationAnswer(learned_at=learned_at, items=[_build_answer(one) for one in reports])


def _build_answer(report: CalibrationReport) -> ScoringCalibration:
    return ScoringCalibration(
        **_compute_figures(report),
        scoring=report.scoring,
        ratio=None if report.ratio is None else round(report.ratio, 4),
        is_far_off=report.is_far_off,
        deciles=[DecileAnswer(**_compute_figures(one)) for one in report.deciles],
    )


def _compute_figures(sums: CalibrationSums) -> dict[str, float]:
    return {
        "impressions": round(sums.impressions, 1),
        "predicted_clicks": round(sums.predicted_clicks, 2),
        "clicks": round(sums.clicks, 2),
        "predicted_ctr": round(sums.predicted_clicks / sums.impressions, 6) if sums.impressions else 0.0,
        "ctr": round(sums.clicks / sums.impressions, 6) if sums.impressions else 0.0,
    }
