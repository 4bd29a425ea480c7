"""Runs a test that failed once more: a machine that has no time for a server for seconds fails one of thousands.

The failure that does not count is shown at the end of the run. Of a test that passes only one report is sent.
"""

from typing import Final

import pytest
from _pytest.runner import runtestprotocol

RERUN: Final = "rerun"


class Reruns:
    """The plugin."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if any(report.failed for report in reports):
            for report in reports:
                if report.failed:
                    report.outcome = RERUN  # pyright: ignore[reportAttributeAccessIssue] - a word of ours
                    item.ihook.pytest_runtest_logreport(report=report)
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        for report in reports:
            if not self._is_needless(report, item.config):
                item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _is_needless(self, report: pytest.TestReport, config: pytest.Config) -> bool:
        """Return whether nobody reads it: sending it from a worker takes longer than most tests."""
        is_around = report.when != "call" and report.passed
        return is_around and config.getoption("durations") is None and not config.getoption("xmlpath")

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        return (RERUN, "R", "RERUN") if str(report.outcome) == RERUN else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for report in terminalreporter.getreports(RERUN):
            terminalreporter.write_sep("_", f"RERUN {report.nodeid}")
            terminalreporter.write_line(report.longreprtext)
