"""One picture: ratio to native per pattern or kernel's phase and method, write above and read below, in bands.

The axis is logarithmic, so that 2× and ½× look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mpiio_ext.bench.results.table import parts
from mpiio_ext.common.plots import Axis, Bar, Chart, Panel, look, save
from mpiio_ext.common.results import Measured
from mpiio_ext.common.units import digits_text
from mpiio_ext.report.words import interface_title

_PER_BAND = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    """Bars that stand together: rows of one pattern, kernel or phase, by (method, operation)."""

    label: str
    rows: dict[tuple[str, str], Measured]


def _label(rows: Sequence[Measured], phase: str) -> str:
    last = rows[0].last
    interface = "" if last.kind == "pattern" and last.interface == "mpiio" else "\n" + interface_title(last.interface)
    text = last.label.replace(" of ", "\n").replace(" with ", "\nwith ").replace(" (", "\n(").replace(", ", "\n")
    return text + (f"\n{phase}" if phase else "") + interface


def _clusters(rows: Sequence[Measured]) -> list[_Cluster]:
    return [
        _Cluster(
            label=_label(group, phase),
            rows={(row.key.strategy, "read" if row.key.operation == "read" else "write"): row for row in group},
        )
        for (_, _, phase), group in parts(rows).items()
    ]


def _draw(clusters: Sequence[_Cluster], methods: Sequence[str], places: int, operation: str, panel: Panel) -> None:
    """Draw an operation of clusters, for which there are `places`.

    Having no natural foot on a logarithmic axis, bars grow from 1, up or down.
    """
    width = 0.84 / len(methods)
    for k, method in enumerate(methods):
        rows = [(x, cluster.rows.get((method, operation))) for x, cluster in enumerate(clusters)]
        ratios = [
            (x - 0.42 + (k + 0.5) * width, row.ratio) for x, row in rows if row is not None and row.ratio is not None
        ]
        bars = [
            Bar(at, one.median - 1, foot=1, errors=(one.median - one.low, one.high - one.median)) for at, one in ratios
        ]
        panel.bars(bars, look(k), method, width=width, edge="ink", thin=0.4)
    panel.rule(1, across=True, width=1)
    names = [cluster.label if operation == "read" else "" for cluster in clusters]
    label = f"{operation}: bandwidth\nrelative to native"
    panel.frame(
        Axis(low=-0.6, high=places - 0.4, ticks=list(enumerate(names))),
        Axis(label=label, scale="log2", grid=True, form=lambda value: f"{digits_text(value)}×"),
    )


def plot_ratios(summaries: Sequence[Measured], folder: Path) -> list[Path]:
    """Write ratios.svg and ratios.png into `folder` and return their paths; without ratios write nothing."""
    rows = [row for row in summaries if row.ratio is not None and row.key.strategy != "native"]
    if not rows:
        return []
    clusters = _clusters(rows)
    methods = list(dict.fromkeys(row.key.strategy for row in rows))
    bands = [clusters[k : k + _PER_BAND] for k in range(0, len(clusters), _PER_BAND)]
    chart = Chart(
        name="ratios",
        title="Bandwidth relative to native",
        width=max(7.0, 1.6 * len(bands[0])),
        height=6.4 * len(bands),
        legend="above",
        columns=5,
        panels=[
            [partial(_draw, band, methods, len(bands[0]), operation)]
            for band in bands
            for operation in ("write", "read")
        ],
    )
    paths = [folder / "ratios.svg", folder / "ratios.png"]
    for path in paths:
        save(chart, path, dots_per_inch=150 if len(bands) == 1 else 100)
    return paths
