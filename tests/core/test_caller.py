"""Roles: advertisers and publishers act for an account, admins and viewers for none."""

import pytest

from adloom.core.caller import Caller, Role
from tests.support.rows import an_id


@pytest.mark.parametrize(
    ("role", "sees_all"), [("admin", True), ("viewer", True), ("advertiser", False), ("publisher", False)]
)
def test_only_admins_and_viewers_see_all_accounts(role: str, *, sees_all: bool) -> None:
    caller = Caller(subject="x", role=Role(role), account_id=None if sees_all else an_id(1))

    assert caller.sees_all is sees_all


@pytest.mark.parametrize("role", [Role.ADVERTISER, Role.PUBLISHER])
def test_an_account_role_needs_an_account(role: Role) -> None:
    with pytest.raises(AssertionError):
        Caller(subject="x", role=role)
