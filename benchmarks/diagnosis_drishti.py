"""What Drishti flags of the logs of the diagnosis corpus, held against the same truth.

Problem. Drishti (PyPI ``drishti-io``) lists issues, and does not say which one the job waits for.

Algorithm. The issues that it calls critical (level HIGH; redundant accesses, a warning, as well) are mapped to causes,
in its favour: any of several issues that follow from a cause counts as its name (:data:`NAMES`). A cause is flagged
where one of them is. All other critical issues are counted beside it; of a log without a cause all are others.

Guarantees. Drishti runs in an environment of its own, and is no dependency of anything here.
"""

from __future__ import annotations

import collections
import csv
import pathlib
import subprocess
import tempfile
from typing import Any

from diagnosis_scores import truth

#: Code -> what it says; those that Drishti calls critical, and the two of redundant accesses.
ISSUES = {
    "S01": "STDIO", "P05": "small reads", "P06": "small writes", "P07": "misaligned memory", "P08": "misaligned file",
    "P09": "redundant reads", "P10": "redundant writes", "P11": "random reads", "P13": "random writes",
    "P15": "small reads of a shared file", "P16": "small writes of a shared file", "P17": "metadata time",
    "P18": "imbalance of data", "P19": "imbalance of time", "P21": "imbalance of writes", "P22": "imbalance of reads",
    "M02": "no collective reads", "M03": "no collective writes", "M09": "aggregators",
}  # fmt: skip
_IMBALANCE = {"P18", "P19", "P21", "P22"}
_SMALL = {"P05", "P06", "P15", "P16", "P11", "P13"}
#: Cause -> issues that count as its name.
NAMES = {
    "root_writes": _IMBALANCE, "root_reads": _IMBALANCE, "stragglers": _IMBALANCE, "slow_file": {"P19"},
    "few_aggregators": {"M09", *_IMBALANCE}, "small_requests": {"M02", "M03", *_SMALL},
    "read_modify_write": {"P09", "P10"}, "redundant_reads": {"P09"}, "metadata": {"P17"}, "shared_opens": {"P17"},
}  # fmt: skip


def flags(log: pathlib.Path, command: str) -> list[str]:
    """Return the codes of the issues that Drishti flags of a log."""
    with tempfile.TemporaryDirectory() as folder:
        run = [command, "--csv", "--export_dir", folder, str(log)]
        subprocess.run(run, check=True, capture_output=True, timeout=120)
        (table,) = pathlib.Path(folder).glob("*.csv")
        (row,) = csv.DictReader(table.open())
    return [code for code in ISSUES if row[code] == "True"]


def compared(rows: list[dict[str, Any]], folder: pathlib.Path, command: str) -> list[str]:
    """Return a table by cause: logs, named by the first sentence here, named and not named by Drishti's issues."""
    tally: collections.Counter[tuple[str, str]] = collections.Counter()
    for row in rows:
        cause, found = truth(row).first, set(flags(folder / row["log"], command))
        others = found - NAMES.get(cause, set())
        tally.update({(cause, "logs"): 1, (cause, "right"): int(row["right"]), (cause, "others"): len(others),
                      (cause, "named"): int(bool(found - others)), (cause, "quiet"): int(not found)})  # fmt: skip
    out = ["", "| truth | logs | first sentence right | Drishti flags it | other critical issues of Drishti, a log |",
           "|---|---|---|---|---|"]  # fmt: skip
    for cause in sorted({cause for cause, _ in tally}):
        logs, named = tally[cause, "logs"], tally[cause, "named" if cause else "quiet"]
        flagged = f"{named}" if cause else f"{named} without any"
        out.append(f"| {f'`{cause}`' if cause else 'no cause'} | {logs} | {tally[cause, 'right']} | {flagged} |"
                   f" {tally[cause, 'others'] / logs:.1f} |")  # fmt: skip
    return out
