"""A table of how long the files of tests took, in the summary of a run: where the time of a suite goes.

Set-up, call and tear-down of every test count to its file. Times are wall-clock seconds of the worker that ran the
test; with several workers their sum is larger than the time of the run.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

#: Files that the table lists.
LISTED = 50


class Durations:
    """The plugin: seconds and tests by file, printed at the end with ``--durations-files``."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.tests: defaultdict[str, int] = defaultdict(int)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test to its file; the process that controls workers gets the reports of all of them."""
        name = report.nodeid.split("::", 1)[0]
        self.seconds[name] += report.duration
        self.tests[name] += report.when == "setup"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the files that took longest, with the share of all that they and those before them took."""
        total = sum(self.seconds.values()) or 1.0
        terminalreporter.section("seconds by file")
        sofar = 0.0
        for name, seconds in sorted(self.seconds.items(), key=lambda item: -item[1])[:LISTED]:
            sofar += seconds
            terminalreporter.write_line(f"{seconds:8.1f} s {self.tests[name]:5d} tests {sofar / total:4.0%}  {name}")
        terminalreporter.write_line(f"{total:8.1f} s {sum(self.tests.values()):5d} tests in {len(self.seconds)} files")
