"""Every JSON file below `control` is a case; every error code that we own has one."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from adloom.core.errors import AdloomError
from adloom.runtime.valkey import Valkey
from tests.support.control import ControlPlane
from tests.support.databases import Databases
from tests.support.for_each import noted
from tests.support.golden import read_case, run_case

FOLDER = Path(__file__).parent
CASES = sorted((FOLDER / "control").rglob("*.json"))
# They need several requests or a wait, so their tests are elsewhere.
TESTED_ELSEWHERE = {
    "ASSET_IN_USE",
    "ASSET_NOT_FOUND",
    "ASSET_REFUSED",
    "ASSET_TOO_LARGE",
    "BODY_TOO_LARGE",
    "PASSWORD_CHANGE_REQUIRED",
    "PASSWORD_LOG_IN_OFF",
    "PREVIEW_LINK_EXPIRED",
    "PREVIEW_LINK_INVALID",
    "PREVIEW_REFUSED",
    "RATE_LIMITED",
    "SECOND_FACTOR_REQUIRED",
    "SECOND_FACTOR_SET_UP_REQUIRED",
    "SECOND_FACTOR_WRONG",
    "SINGLE_SIGN_ON_REFUSED",
    "TARGETING_RULE_LIMIT_REACHED",
}
OWN_PACKAGES = ("adloom.catalog", "adloom.identity", "adloom.targeting")
# Seed 1, section 8, written out, so that renaming a class cannot change its code. Conflicts with a deletion are 409
# since then, but for the one that the contract's own checks have as 400.
SEED_CODES = {
    "BANNER_NOT_FOUND": 404,
    "BANNER_ALREADY_DELETED": 409,
    "BANNER_NOT_DELETED": 400,
    "BANNER_SCHEDULE_INVALID": 400,
    "BANNER_SEO_NOT_FOUND": 404,
    "PLACEMENT_NOT_FOUND": 404,
    "PLACEMENT_SLUG_EXISTS": 409,
    "PLACEMENT_HAS_ACTIVE_ASSIGNMENTS": 409,
    "CAMPAIGN_NOT_FOUND": 404,
    "CAMPAIGN_ALREADY_DELETED": 409,
    "CAMPAIGN_NOT_DELETED": 409,
    "CAMPAIGN_DATE_INVALID": 400,
    "CAMPAIGN_INVALID_TRANSITION": 400,
    "CAMPAIGN_PLACEMENT_NOT_FOUND": 404,
    "CAMPAIGN_PLACEMENT_ALREADY_EXISTS": 409,
    "BANNER_ASSIGNMENT_NOT_FOUND": 404,
    "BANNER_ASSIGNMENT_ALREADY_EXISTS": 409,
    "TARGETING_RULE_NOT_FOUND": 404,
    "TARGETING_RULE_INVALID_OPERATOR": 400,
}


@pytest.mark.parametrize("folder", sorted({path.parent for path in CASES}), ids=lambda folder: folder.name)
async def test_golden(
    folder: Path, control: ControlPlane, databases: Databases, database_url: str, valkey: Valkey
) -> None:
    for path in (case for case in CASES if case.parent == folder):
        with noted(path=path.relative_to(FOLDER)):
            await run_case(read_case(path), control)
        await asyncio.to_thread(databases.empty, database_url)
        await valkey.flushall()


def test_every_error_code_of_the_catalog_and_of_identity_has_a_case() -> None:
    expected = {
        case.expect.body.get("errorCode") for case in map(read_case, CASES) if has_body(case.expect.body)
    }

    assert own_codes() <= expected | TESTED_ELSEWHERE, own_codes() - expected


def test_every_error_code_of_the_seed_has_a_case_with_its_status() -> None:
    expected = {
        (case.expect.body.get("errorCode"), case.expect.status)
        for case in map(read_case, CASES)
        if has_body(case.expect.body)
    }

    assert SEED_CODES.items() <= expected, SEED_CODES.items() - expected


def has_body(body: object) -> bool:
    return body is not msgspec.UNSET


def own_codes() -> set[str]:
    codes = {"VALIDATION_FAILED", "UNAUTHENTICATED", "FORBIDDEN", "NOT_FOUND", "METHOD_NOT_ALLOWED"}
    pending: list[type[AdloomError]] = [AdloomError]
    while pending:
        error = pending.pop()
        pending += error.__subclasses__()
        if error.__module__.startswith(OWN_PACKAGES):
            codes.add(error.code)
    return codes
