"""Why was one method slower than another here? A section of the report of the bench.

Problem. The report shows, row by row, the faster method, and the extension's statistics show the work of each method;
for a hundred rows nobody compares the two by hand.

Algorithm. :func:`mpiio_ext.analytics.analyses.methods.explained` compares the methods of each case by their statistics.
The section has a line for each pair that differs enough, the largest differences first, and says which phase accounts
for most of the difference how often. The page is that of ``mpiio-ext bench report``, made anew with the section in it.
"""

from __future__ import annotations

import collections
import html
import re
from collections.abc import Sequence
from pathlib import Path

from mpiio_ext.analytics.analyses.counting import count_words
from mpiio_ext.analytics.analyses.methods import WORTH_ASKING, Explained, explained
from mpiio_ext.analytics.analyses.source import Source
from mpiio_ext.common.page import Grid, Section
from mpiio_ext.report.load import load_all
from mpiio_ext.report.page import Page, render
from mpiio_ext.report.words import interface_title

#: Lines of the section: with the rest of the page they stay below its limit of size.
MOST_PAIRS = 100
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)


def _line(one: Explained) -> tuple[str, ...]:
    case = f"{one.pattern} [{interface_title(one.interface)}], {f'{one.phase}, ' if one.phase else ''}{one.operation}"
    reason = one.evidence or "no statistic that was kept of both differs"
    return case, one.slower, one.faster, f"{one.ratio:.2f}×", reason


def _summary(found: Sequence[Explained]) -> str:
    """Return which phase accounts for most of the difference, and how often."""
    mains = collections.Counter(one.main for one in found if one.main)
    if not mains:
        return "No time that was measured of both accounts for a part of a difference."
    parts = ", ".join(f"{name} in {count:,}" for name, count in mains.most_common())
    rest = len(found) - sum(mains.values())
    return f"Most of the difference is accounted for by: {parts}" + (
        f"; by nothing that was measured of both in {rest:,}." if rest else "."
    )


def why_section(source: Source) -> Section:
    """Return the section about all results of a source, which has the table ``runs``."""
    found = explained(source)
    percent = round(100 * (WORTH_ASKING - 1))
    about = (
        "Of each pattern and kernel, the slowest of our methods and auto are compared with the fastest of ours,"
        f" and auto with the MPI library alone, where the median times differ by {percent} % or more, and beyond the"
        " spread of the repetitions. What is named differs with the time; times of phases are those of the rank that"
        " was in each longest."
    )
    if not found:
        sentences = [about, "No two methods of these results differ so much."]
    else:
        sentences = [about, f"{count_words(len(found), 'pair')}. {_summary(found)}"]
    left = len(found) - MOST_PAIRS
    note = (
        (
            f"{left:,} smaller differences are not shown: mpiio-ext analyze methods --results DIR --slower … "
            "--faster … has them."
        )
        if left > 0
        else ""
    )
    grid = Grid(
        columns=("case", "slower", "faster", "time", "what differs"),
        rows=[_line(one) for one in found[:MOST_PAIRS]],
        note=note,
    )
    return Section(
        anchor="why", title="Why was one slower than another here?", sentences=sentences, grids=[grid] if found else []
    )


def bench_page(results: Sequence[Path], source: Source, old: Path | None = None) -> Page:
    """Return the report of the bench with the section in it.

    Parameters
    ----------
    results : folders that the bench wrote, or their results.json.
    source : the same results as tables.
    old : a page whose heading is kept, where it is there.

    Raises
    ------
    ReportError
        The results cannot be read.
    """
    title = "I/O benchmark of mpiio_ext"
    if old is not None and old.is_file():
        known = _TITLE.search(old.read_text(encoding="utf-8", errors="replace"))
        title = html.unescape(known[1]) if known else title
    return render(*load_all(list(results)), title=title, added=[why_section(source)])
