"""The rule about folders: files of one take far longer than files of another that are accessed alike.

Problem. A job may have its output in two file systems, or on two kinds of storage, of which one is slow. Of as many
slow files as fast ones, none is slower than the median.

Algorithm. Files with about as many bytes, in requests of about the same size, are compared folder by folder. A folder
is slow if its fastest file takes several times as long for a byte as the slowest file of another folder.
"""

from __future__ import annotations

import posixpath

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.case import TAKEN_OUT, Case
from mpiio_ext.analytics.diagnosis.cause import ALWAYS, Cause, Cells, Offer
from mpiio_ext.analytics.diagnosis.model import Claim, Finding
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.analytics.factors.storage import ALIKE, alike
from mpiio_ext.analytics.tables.arrays import Flags


def slow_folder(case: Case) -> Finding | None:
    """Files of one folder take far longer than files of another one."""
    files, least = case.files, case.limits.alike_files
    names = files.table["file"].to_pylist() if "file" in files.table.schema.names else [None] * len(files)
    folders = np.array([posixpath.dirname(name or "") for name in names], dtype=object)
    named = np.array([name is not None and not TAKEN_OUT.fullmatch(name) for name in names])
    times, size = alike(files), case.request_bytes
    known: Flags = named & ~np.isnan(times) & ~np.isnan(size)
    if known.sum() < 2 * least:
        return None
    usual = float(np.median(size[known]))
    each = np.where(known & (size >= usual / ALIKE) & (size <= usual * ALIKE), times, np.nan)
    groups = {folder: np.asarray((folders == folder) & ~np.isnan(each)) for folder in dict.fromkeys(folders.tolist())}
    groups = {folder: group for folder, group in groups.items() if group.sum() >= least}
    if len(groups) < 2:
        return None
    slow = max(groups, key=lambda folder: float(each[groups[folder]].min()))
    fast = min(groups, key=lambda folder: float(each[groups[folder]].max()))
    chosen, others = groups[slow], groups[fast]
    if not each[chosen].min() >= case.limits.slow * each[others].max():
        return None
    ratio = float(np.median(each[chosen]) / max(float(np.median(each[others])), 1e-30))
    claim = Claim(
        title=f"Files of one folder take {worded(case.value(ratio), 'ratio')} as long for a byte as files of another"
        " folder.",
        confidence="high" if case.write else "medium",
        reason="files of both folders have as many bytes, in requests of the same size"
        + ("" if case.write else "; some of them may have been read from memory"),
        evidence=[
            *case.evidence("files of the slow folder", float(chosen.sum()), "count"),
            *case.evidence("files of the other folder", float(others.sum()), "count"),
            *case.evidence("time for a byte in the slow folder, over the other folder", ratio, "ratio"),
        ],
        advice=[say.other_folder()],
        by_times=True,
    )
    return case.finding(SLOW_FOLDER, claim, chosen=chosen)


SLOW_FOLDER = Cause(
    name="slow_folder",
    rule=slow_folder,
    cells=Cells(("data",), ("POSIX", "STDIO")),
    effects=("slow_file", "serialised", "stragglers", "small_requests"),
    phrase="{way}s{at}, whose folder is far slower than one with files of the same kind",
    section="The storage was slow",
    mechanism="One of the folders is on slower storage.",
    condition=(
        "Each alike file of one folder takes {slow} times as long for a byte as any alike file of another folder. Both"
        " folders have {alike_files} alike files, with requests of about the same size."
    ),
    sure="if the files are written",
    sentences=("Files of one folder take",),
    advice=(Offer(ALWAYS, lambda _: say.other_folder()),),
)
