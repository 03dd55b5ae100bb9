"""Results of ``mpiio-ext bench arbitration``: the document, its figure, its section beside results of the bench.

Guarantees. A file that is not understood is refused with its name and place, as results are; a set without the file has
            no section.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from mpiio_ext.common import documents
from mpiio_ext.common.documents import DocumentError
from mpiio_ext.common.page import Figure, Grid, Section, drawn
from mpiio_ext.common.plots import SERIES, Axis, Chart, Look, Panel, corners, look
from mpiio_ext.common.units import megabytes
from mpiio_ext.report import words
from mpiio_ext.report.errors import ReportError

#: Name of the file beside results.json, and the version of its contents.
FILE, FORMAT = "arbitration.json", 1
#: Slots that make a point of the figure.
_SMOOTH = 3
#: What such a run cannot answer: repeated runs of one policy differ more than the policies do.
ONE_RUN = "Each policy ran once: a difference between policies in these numbers is no evidence for one of them."

_Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
#: Seconds since the first job began to write: the slot of that moment, and steps of the map, began before.
_Time = Annotated[float, Field(allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class _Slot:
    """Bytes that a job has moved in a slot of time."""

    time_s: _Time
    data_bytes: _Count


@dataclass(frozen=True, kw_only=True)
class _Job:
    pattern: str
    data_bytes: _Count
    bandwidth_mb_per_s: _Number
    end_s: _Time
    slot_s: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    slots: list[_Slot]


@dataclass(frozen=True, kw_only=True)
class _Step:
    """A change of the arbiter's map: I/O nodes by job."""

    time_s: _Time
    io_nodes: dict[str, _Count | None]


@dataclass(frozen=True, kw_only=True)
class _Run:
    jobs: dict[str, _Job]
    map: list[_Step]
    bandwidth_mb_per_s: _Number

    def io_nodes(self, job: str) -> str:
        """Return how many I/O nodes a job had, one after the other."""
        counts: list[int] = []
        for step in self.map:
            count = step.io_nodes.get(job)
            if count is not None and counts[-1:] != [count]:
                counts.append(count)
        return " → ".join(map(str, counts))


@dataclass(frozen=True, kw_only=True)
class _Setting:
    ranks: _Count
    io_nodes: _Count


@dataclass(frozen=True, kw_only=True)
class Document:
    """The used part of the file; its names are those of `mpiio_ext.bench.arbitrated.results`."""

    what: Literal["arbitration run"]
    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    configuration: _Setting
    policies: dict[str, _Run]


def parsed(found: object) -> Document:
    """Return plain data as a document, or raise a DocumentError."""
    return documents.parse(Document, found)


# ---- the figure ------------------------------------------------------------------------------------------------------


def _points(job: _Job) -> tuple[list[float], list[float]]:
    parts = [job.slots[at : at + _SMOOTH] for at in range(0, len(job.slots), _SMOOTH)]
    times = [part[0].time_s + len(part) * job.slot_s / 2 for part in parts]
    return times, [sum(slot.data_bytes for slot in part) / 1e6 / (len(part) * job.slot_s) for part in parts]


def _steps(run: _Run, job: str, end: float) -> tuple[list[float], list[float | None]]:
    times = [step.time_s for step in run.map]
    return corners([*times, max([end, *times])], [float(step.io_nodes.get(job) or 0) for step in run.map])


def chart(found: Document) -> Chart:
    """Return the bandwidth of each job over time for each policy, and its I/O nodes below."""
    policies = found.policies

    def draw(below: bool, policy: str, panel: Panel) -> None:
        run, first = policies[policy], panel.narrow or policy == next(iter(policies))
        end = max((job.end_s for job in run.jobs.values()), default=0.0)
        for index, (name, job) in enumerate(run.jobs.items()):
            x, y = _steps(run, name, end) if below else _points(job)
            panel.line(x, y, Look(look(index).colour, look(index).dash), name)
        label, ticks = "bandwidth [MB/s]", None
        if below:
            label, ticks = "I/O nodes", [(n, str(n)) for n in range(found.configuration.io_nodes + 1)]
        panel.frame(
            Axis(label="time [s]" if below or panel.narrow else "", low=0),
            Axis(label=label if first else "", low=0, grid=True, ticks=ticks),
            "" if below else policy.upper(),
        )

    return Chart(
        name="arbitration",
        title="Bandwidth and I/O nodes of each job, in one run of each policy",
        panels=[[partial(draw, below, policy) for policy in policies] for below in (False, True)],
        width=4.2 * len(policies),
        height=4.2,
        heights=(3, 1),
        legend="above",
        columns=SERIES,
        share=True,
    )


# ---- the section -----------------------------------------------------------------------------------------------------


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
        document = parsed(documents.read_json(path, ReportError))
    except DocumentError as error:
        raise ReportError(
            f"{path}: is no arbitration run of format {FORMAT}: {error.problems[0]}; remove it, or run "
            "mpiio-ext bench arbitration again"
        ) from error
    rows = [row for policy, run in document.policies.items() for row in _rows(policy, run)]
    setting = document.configuration
    sentences = [
        f"Jobs of {setting.ranks} ranks each, which begin and end one after the other, share {setting.io_nodes} I/O "
        "nodes that a running arbiter gives them, once for each policy. The bandwidth is what the ranks could write; "
        "every byte was compared. I/O nodes are delegates of this machine, so that what is divided is their number.",
        ONE_RUN,
    ]
    title = "Arbitration" + (f" ({path.parent.name})" if several else "")
    anchor, figures = f"arbitration{number}", list[Figure]()
    if rows:
        caption = "Bandwidth and I/O nodes of each job over time, for each policy."
        drawing = drawn(dataclasses.replace(chart(document), name=anchor), caption=caption)
        figures = [dataclasses.replace(drawing, name=FILE, data=path.read_text(encoding="utf-8"))]
    columns = ("policy", "job", "pattern", "I/O nodes", "written", "MB/s", "MB/s while all jobs wrote")
    return Section(
        anchor=anchor, title=title, sentences=sentences, figures=figures, grids=[Grid(columns=columns, rows=rows)]
    )


def _rows(policy: str, run: _Run) -> list[tuple[str, ...]]:
    return [
        (
            policy.upper(),
            name,
            job.pattern,
            run.io_nodes(name),
            megabytes(job.data_bytes),
            words.bandwidth(job.bandwidth_mb_per_s),
            "" if at else words.bandwidth(run.bandwidth_mb_per_s),
        )
        for at, (name, job) in enumerate(run.jobs.items())
    ]
