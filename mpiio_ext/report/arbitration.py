"""The section about arbitration: what ``mpiio-ext bench arbitration`` has put beside results of the bench.

Guarantees. A file that is not understood is refused with its name and place, as results are; a set without the file has
            no section.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mpiio_ext.common.page import Figure, Grid, Section
from mpiio_ext.common.units import megabytes
from mpiio_ext.report import words
from mpiio_ext.report.errors import ReportError

#: Name of the file beside results.json; its figure has the same name with the ending svg.
FILE = "arbitration.json"
_FORMAT = 1


def sections(paths: Iterable[Path]) -> list[Section]:
    """Return a section for each results.json of `paths` that has such a file beside it.

    Raises
    ------
    ReportError
        A file cannot be read or understood.
    """
    found = [path.with_name(FILE) for path in paths if path.with_name(FILE).is_file()]
    return [_section(path, number, several=len(found) > 1) for number, path in enumerate(dict.fromkeys(found), 1)]


def _section(path: Path, number: int, *, several: bool) -> Section:
    rows: list[tuple[str, ...]]
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.get("what") != "arbitration run" or document.get("format") != _FORMAT:
            raise ReportError(f"{path}: is no arbitration run of format {_FORMAT}")
        rows = [row for policy, run in document["policies"].items() for row in _rows(policy, run)]
        setting = document["configuration"]
        sentences = [
            f"Jobs of {setting['ranks']} ranks each, which begin and end one after the other, share "
            f"{setting['io_nodes']} I/O nodes that a running arbiter gives them, once for each policy. The bandwidth "
            "is what the ranks could write; every byte was compared. I/O nodes are delegates of this machine, so that "
            "what is divided is their number."]
    except ReportError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReportError(f"{path}: is no arbitration run that is understood: {type(error).__name__}: {error}; remove "
                          "it, or run mpiio-ext bench arbitration again") from error
    figure = path.with_suffix(".svg")
    caption = "Bandwidth and I/O nodes of each job over time, for each policy."
    figures = ([Figure(drawing=figure.read_text(encoding="utf-8"), image=True, caption=caption)]
               if figure.is_file() else [])
    columns = ("policy", "job", "pattern", "I/O nodes", "written", "MB/s", "all jobs, MB/s")
    return Section(
        anchor=f"arbitration{number}", title="Arbitration" + (f" ({path.parent.name})" if several else ""),
        sentences=sentences, figures=figures, grids=[Grid(columns=columns, rows=rows)] if rows else [])


def _rows(policy: str, run: Mapping[str, Any]) -> list[tuple[str, ...]]:
    out: list[tuple[str, ...]] = []
    for name, job in run["jobs"].items():
        counts: list[int] = []
        for step in run["map"]:
            count = step["io_nodes"].get(name)
            if count is not None and counts[-1:] != [count]:
                counts.append(int(count))
        together = words.bandwidth(float(run["bandwidth_mb_per_s"])) if not out else ""
        out.append((policy.upper(), str(name), str(job["pattern"]), " → ".join(map(str, counts)),
                    megabytes(int(job["data_bytes"])), words.bandwidth(float(job["bandwidth_mb_per_s"])),
                    together))
    return out
