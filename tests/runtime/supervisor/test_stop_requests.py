"""The first request to stop asks, a later one insists."""

from adloom.runtime.supervisor.supervisor import SAME_SECONDS, StopRequests


def heard(*moments: float) -> list[str]:
    told: list[str] = []
    requests = StopRequests(ask=lambda: told.append("ask"), insist=lambda: told.append("insist"))
    for moment in moments:
        requests.receive(moment)
    return told


def test_one_request_asks() -> None:
    assert heard(5.0) == ["ask"]


def test_a_ctrl_c_passed_on_by_the_parent_program_is_one_request() -> None:
    assert heard(5.0, 5.0 + SAME_SECONDS / 2) == ["ask"]


def test_a_second_ctrl_c_insists() -> None:
    assert heard(5.0, 5.0 + SAME_SECONDS) == ["ask", "insist"]
