"""The figure of the lock model: lock requests, conflicts and predicted bandwidth against aggregators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mpiio_ext.common.files import replacing
from mpiio_ext.common.units import size_text
from mpiio_ext.errors import ArgumentError
from mpiio_ext.partitioning.locks._outcome import Outcome
from mpiio_ext.partitioning.locks._sweep import Variant, relation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

_MARKS = {"equal": "D", "factor": "v", "multiple": "^", "co-prime": "o", "neither": "s"}
#: Only points of one class are joined: between them counts jump by orders of magnitude, which is no slope.
_CLASSES: dict[Literal["-", ":"], tuple[str, ...]] = {
    "-": ("factor", "equal", "multiple"),
    ":": ("co-prime", "neither"),
}
_SUFFIXES = (".svg", ".png", ".pdf")
_MIB = 2**20
#: Widths in points of the first and the last line, sizes of their marks: methods with equal results stay visible, as
#: the later lines lie on the earlier ones and are narrower.
_WIDTHS, _SIZES = (6.5, 0.8), (11.0, 2.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """One quantity: its value for each outcome; counts go from 0 upwards by powers of ten."""

    title: str
    values: Sequence[float]
    counts: bool


def _between(ends: tuple[float, float], index: int, number: int) -> float:
    """Return the `index`-th of `number` values from the first end to the second, each the same part of the last."""
    return float(ends[0] * (ends[1] / ends[0]) ** (index / max(number - 1, 1)))


def _label(outcome: Outcome) -> str:
    return Variant(method=outcome.method, stripe_size_io=outcome.stripe_size_io).label


def _related(outcome: Outcome) -> str:
    return relation(outcome.geometry.aggregators, outcome.geometry.servers)


def _share_of_fastest(outcomes: Sequence[Outcome]) -> list[float]:
    """Return each bandwidth in percent of the largest with as many aggregators."""
    best: dict[int, float] = {}
    for o in outcomes:
        number = o.geometry.aggregators
        best[number] = max(o.bandwidth_bytes_s, best.get(number, 0.0))
    return [100 * o.bandwidth_bytes_s / (best[o.geometry.aggregators] or 1.0) for o in outcomes]


def _draw_panel(axis: Axes, outcomes: Sequence[Outcome], panel: _Panel) -> None:
    """Draw one quantity: a colour for each variant, a mark for how aggregators match servers."""
    labels = list(dict.fromkeys(map(_label, outcomes)))
    for index, label in enumerate(labels):
        points = [(o, value) for o, value in zip(outcomes, panel.values, strict=True) if _label(o) == label]
        width, size = _between(_WIDTHS, index, len(labels)), _between(_SIZES, index, len(labels))
        for style, relations in _CLASSES.items():
            joined = [(o.geometry.aggregators, value) for o, value in points if _related(o) in relations]
            axis.plot(*zip(*joined, strict=True) if joined else ((), ()), style, color=f"C{index}", linewidth=width)
        for o, value in points:
            axis.plot(o.geometry.aggregators, value, _MARKS[_related(o)], markersize=size, markeredgewidth=1,
                      markerfacecolor="none", color=f"C{index}")  # fmt: skip
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter("{x:,.0f}")  # 16,384 rather than a power
    axis.tick_params(axis="x", labelsize=8)
    if panel.counts:
        axis.set_yscale("symlog", linthresh=1)
        axis.set_ylim(-0.4, 3 * max(1, *panel.values))
    else:
        axis.yaxis.set_major_formatter("{x:,.0f}")
    axis.set_title(panel.title, fontsize=10)
    axis.set_xlabel("aggregators")
    axis.grid(visible=True, linewidth=0.3)


def _legend(figure: Figure, outcomes: Sequence[Outcome]) -> None:
    """Say below the panels what colours, marks and lines mean."""
    from matplotlib.lines import Line2D

    labels = list(dict.fromkeys(map(_label, outcomes)))
    used = {_related(o) for o in outcomes}
    entries = [
        Line2D([], [], color=f"C{index}", linewidth=_between(_WIDTHS, index, len(labels)), label=label)
        for index, label in enumerate(labels)
    ]
    entries += [
        Line2D([], [], color="grey", marker=mark, markerfacecolor="none", label=f"{name} (aggregators to servers)",
               linestyle=next(style for style, relations in _CLASSES.items() if name in relations))
        for name, mark in _MARKS.items()
        if name in used
    ]  # fmt: skip
    figure.legend(handles=entries, loc="outside lower center", ncols=3, fontsize=8)


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

    one = outcomes[0]
    panels = (
        _Panel(title="lock requests", values=[o.total_lock_requests for o in outcomes], counts=True),
        _Panel(title="conflicts", values=[o.total_conflicts for o in outcomes], counts=True),
        _Panel(title="predicted MiB/s", values=[o.bandwidth_bytes_s / _MIB for o in outcomes], counts=False),
        _Panel(title="predicted bandwidth, % of the fastest method with as many aggregators",
               values=_share_of_fastest(outcomes), counts=False),
    )  # fmt: skip
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mpiio_ext"}):
        figure = Figure(figsize=(11.5, 9), layout="constrained")
        FigureCanvasAgg(figure)
        for axis, panel in zip(figure.subplots(2, 2).flat, panels, strict=True):
            _draw_panel(axis, outcomes, panel)
        region_bytes = one.geometry.end_bytes - one.geometry.start_bytes
        region, stripe, window = (
            size_text(count, exact=True)
            for count in (region_bytes, one.geometry.stripe_size_bytes, one.window_bytes)
        )
        figure.suptitle(
            f"{one.file_system.name}{', caches' if one.file_system.caches else ''}, {one.geometry.servers} servers, "
            f"{one.operation} of {region} in stripes of {stripe}, windows of {window}, by lock model", fontsize=11,
        )  # fmt: skip
        _legend(figure, outcomes)
        with replacing(path, ending=path.suffix) as part:
            figure.savefig(part, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
