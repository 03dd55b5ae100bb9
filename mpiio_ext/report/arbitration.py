"""The section about arbitration: what ``mpiio-ext bench arbitration`` has put beside results of the bench.

Guarantees. A file that is not understood is refused with its name and place, as results are; a set without the file has
            no section.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from mpiio_ext.common import documents
from mpiio_ext.common.documents import DocumentError
from mpiio_ext.common.page import Figure, Grid, Section
from mpiio_ext.common.units import megabytes
from mpiio_ext.report import words
from mpiio_ext.report.errors import ReportError

#: Name of the file beside results.json; its figure has the same name with the ending svg.
FILE = "arbitration.json"
_FORMAT = 1

_Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class _Job:
    pattern: str
    data_bytes: _Count
    bandwidth_mb_per_s: _Number


@dataclass(frozen=True, kw_only=True)
class _Step:
    """A change of the arbiter's map: I/O nodes by job."""

    io_nodes: dict[str, _Count | None]


@dataclass(frozen=True, kw_only=True)
class _Run:
    jobs: dict[str, _Job]
    map: list[_Step]
    bandwidth_mb_per_s: _Number


@dataclass(frozen=True, kw_only=True)
class _Setting:
    ranks: _Count
    io_nodes: _Count


@dataclass(frozen=True, kw_only=True)
class _Document:
    """What counts of the file; its names are those of `mpiio_ext.bench.arbitrated.results`."""

    what: Literal["arbitration run"]
    format: Annotated[int, Field(ge=_FORMAT, le=_FORMAT)]
    configuration: _Setting
    policies: dict[str, _Run]


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
    try:
        document = documents.parse(_Document, documents.read_json(path, ReportError))
    except DocumentError as error:
        raise ReportError(
            f"{path}: is no arbitration run of format {_FORMAT}: {error.problems[0]}; remove it, or run "
            "mpiio-ext bench arbitration again"
        ) from error
    rows = [row for policy, run in document.policies.items() for row in _rows(policy, run)]
    setting = document.configuration
    sentences = [
        f"Jobs of {setting.ranks} ranks each, which begin and end one after the other, share {setting.io_nodes} I/O "
        "nodes that a running arbiter gives them, once for each policy. The bandwidth is what the ranks could write; "
        "every byte was compared. I/O nodes are delegates of this machine, so that what is divided is their number."
    ]
    figure = path.with_suffix(".svg")
    caption = "Bandwidth and I/O nodes of each job over time, for each policy."
    together = ", ".join(
        f"{words.bandwidth(run.bandwidth_mb_per_s)} MB/s under {policy.upper()}"
        for policy, run in document.policies.items()
    )
    figures = (
        [
            Figure(
                title=f"All jobs together: {together}, one run each",
                image=True,
                caption=caption,
                drawing=figure.read_text(encoding="utf-8"),
                name=FILE,
                data=path.read_text(encoding="utf-8"),
            )
        ]
        if figure.is_file()
        else []
    )
    columns = ("policy", "job", "pattern", "I/O nodes", "written", "MB/s", "all jobs, MB/s")
    return Section(
        anchor=f"arbitration{number}",
        title="Arbitration" + (f" ({path.parent.name})" if several else ""),
        sentences=sentences,
        figures=figures,
        grids=[Grid(columns=columns, rows=rows)] if rows else [],
    )


def _rows(policy: str, run: _Run) -> list[tuple[str, ...]]:
    out: list[tuple[str, ...]] = []
    for name, job in run.jobs.items():
        counts: list[int] = []
        for step in run.map:
            count = step.io_nodes.get(name)
            if count is not None and counts[-1:] != [count]:
                counts.append(count)
        together = words.bandwidth(run.bandwidth_mb_per_s) if not out else ""
        out.append(
            (
                policy.upper(),
                name,
                job.pattern,
                " → ".join(map(str, counts)),
                megabytes(job.data_bytes),
                words.bandwidth(job.bandwidth_mb_per_s),
                together,
            )
        )
    return out
