"""What a run of pytest left out and why, counted by reason: its last lines but the summary."""

from __future__ import annotations

from collections import Counter

import pytest


def write(reporter: pytest.TerminalReporter) -> None:
    """Write one line for each reason; nothing where every test has run."""
    skipped = reporter.stats.get("skipped", [])
    # The longrepr of what is skipped: file, line, reason. A module that is skipped as a whole counts once.
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ").split("\n")[0] for report in skipped)
    reasons["not selected by -m, -k or --deselect"] = len(reporter.stats.get("deselected", []))
    if +reasons:
        reporter.section(f"left out: {reasons.total()} tests, by reason (-rs: in which files)")
    for reason, count in (+reasons).most_common():
        reporter.write_line(f"{count:6d}  {reason}")
