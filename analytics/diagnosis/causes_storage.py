"""The rule about the storage itself: disks that were down or not ready when the job began.

Problem. A disk that is down makes the others do its work, and one that is emptied or replaced has copies to make beside
the job's requests. A log of the job shows only that calls take long.

Algorithm. The state is that of the last list of disks before the job began (:func:`mpiio_ext.analytics.tools.health.
disk_states`). How much of the time it costs nobody tells, so that the finding is never of high confidence.
"""

from __future__ import annotations

from mpiio_ext.analytics.diagnosis.case import MOST_NAMES, Case
from mpiio_ext.analytics.diagnosis.model import Advice, Finding


def storage_fault(case: Case) -> Finding | None:
    """Disks of the file system were down or not ready."""
    disks = case.disks
    if disks is None or not disks.words:
        return None
    bad = len(disks.words)
    names = [] if case.anonymous else [f"{disk} ({words})" for disk, words in list(disks.words.items())[:MOST_NAMES]]
    which = f": {', '.join(names)}{' …' if len(names) < bad else ''}" if names else ""
    evidence = [
        *case.evidence("disks that are not up (down, recovering)", float(len(disks.down)), "count"),
        *case.evidence("disks that are not ready (suspended, being emptied …)", float(len(disks.not_ready)), "count"),
        *case.evidence("disks of the file system", float(disks.disks), "count"),
        *case.evidence("age of the list of disks when the job began", disks.lead_s, "s"),
    ]
    were = "was" if bad == 1 else "were"
    return case.finding(
        "storage_fault",
        f"{case.value(bad):.0f} of {case.value(disks.disks):.0f} disks of the file system {were} not as they should be"
        f"{which}.",
        case.time,
        "medium" if disks.down else "low",
        "the list of disks says so; what it cost the job, neither the list nor the log tells",
        evidence,
        [Advice("Tell the administrators, and compare with runs at times when all disks were up.",
                "mmlsdisk DEVICE -e")],
        case.files.critical,
        at_most=True,
    )  # fmt: skip
