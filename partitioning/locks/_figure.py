"""The figure of the lock model: lock requests, revocations and predicted bandwidth against aggregators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpiio_ext.errors import ArgumentError, FileSystemError
from mpiio_ext.partitioning.locks._outcome import Outcome
from mpiio_ext.partitioning.locks._sweep import Variant, relation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

_MARKS = {"equal": "D", "factor": "v", "multiple": "^", "co-prime": "o", "neither": "s"}
_SUFFIXES = (".svg", ".png", ".pdf")
_MIB = 2**20


def _panel(axis: Axes, outcomes: Sequence[Outcome], values: Sequence[float], title: str, counts: bool) -> None:
    """Draw one quantity: a line for each variant, a mark for how aggregators match servers."""
    lines: dict[str, list[tuple[int, float, str]]] = {}
    for outcome, value in zip(outcomes, values, strict=True):
        variant = Variant(method=outcome.method, stripe_size_io=outcome.stripe_size_io)
        number = outcome.geometry.aggregators
        mark = _MARKS[relation(number, outcome.geometry.servers)]
        lines.setdefault(variant.label, []).append((number, value, mark))
    for index, (label, points) in enumerate(lines.items()):
        colour = f"C{index}"
        dashed = "--" if label.endswith("stripe-size") else "-"
        axis.plot([p[0] for p in points], [p[1] for p in points], dashed, color=colour, label=label, linewidth=1.2)
        for number, value, mark in points:
            axis.plot(number, value, mark, color=colour, markersize=4)
    axis.set_xscale("log", base=2)
    if counts:
        axis.set_yscale("symlog", linthresh=1)
        axis.set_ylim(bottom=0)
    else:
        axis.set_ylim(bottom=0)
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("aggregators")
    axis.grid(visible=True, linewidth=0.3)


def draw(outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw the outcomes of a sweep.

    Parameters
    ----------
    outcomes : sequence of Outcome
        At least one, all of one file system and region.
    path : Path
        Written whole or not at all; SVG, PNG or PDF by its suffix.

    Raises
    ------
    ArgumentError
        The suffix is another one.
    FileSystemError
        The file cannot be written.
    """
    if path.suffix not in _SUFFIXES:
        raise ArgumentError(f"{path}: a picture ends in {', '.join(_SUFFIXES)}")
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    one = outcomes[0]
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mpiio_ext"}):
        figure = Figure(figsize=(13, 4.8), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, 3)
        _panel(axes[0], outcomes, [o.total_lock_requests for o in outcomes], "lock requests", True)
        _panel(axes[1], outcomes, [o.total_revocations for o in outcomes], "revocations", True)
        _panel(axes[2], outcomes, [o.bandwidth_bytes_s / _MIB for o in outcomes], "predicted MiB/s", False)
        figure.suptitle(
            f"{one.file_system.name}, {one.geometry.servers} servers, {one.operation} of "
            f"{(one.geometry.end_bytes - one.geometry.start_bytes) / _MIB:,.0f} MiB by lock model",
            fontsize=11,
        )
        handles, labels = axes[0].get_legend_handles_labels()
        used = {relation(o.geometry.aggregators, one.geometry.servers) for o in outcomes}
        marks = [
            Line2D([], [], color="grey", marker=mark, linestyle="", label=f"{name} (aggregators to servers)")
            for name, mark in _MARKS.items()
            if name in used
        ]
        labels += [str(mark.get_label()) for mark in marks]
        figure.legend([*handles, *marks], labels, loc="outside lower center", ncols=4, fontsize=8)
        part = path.with_name(f".{path.name}.part{path.suffix}")
        try:
            figure.savefig(part, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise FileSystemError(error.errno, error.strerror, str(path)) from error
