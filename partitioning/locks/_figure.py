"""The figure of the lock model: lock requests, conflicts and predicted bandwidth against aggregators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from mpiio_ext.common.plots import Axis, Chart, Look, Panel, look, save
from mpiio_ext.common.units import size_text
from mpiio_ext.partitioning.locks._outcome import Outcome
from mpiio_ext.partitioning.locks._sweep import Variant, relation

_MARKS = {"equal": "D", "factor": "v", "multiple": "^", "co-prime": "o", "neither": "s"}
#: Only points of one class are joined: between them counts jump by orders of magnitude, which is no slope.
_CLASSES: dict[Literal["-", ":"], tuple[str, ...]] = {
    "-": ("factor", "equal", "multiple"),
    ":": ("co-prime", "neither"),
}
_MIB = 2**20
#: Numbers of aggregators that are all named at the axis, as far as there is room: each has this part of it.
_MOST_NAMED, _ROOM = 12, 0.06
#: Widths in points of the first and the last line, sizes of their marks: methods with equal results stay visible, as
#: the later lines lie on the earlier ones and are narrower.
_WIDTHS, _SIZES = (6.5, 0.8), (11.0, 2.5)


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


def _joined(points: Sequence[tuple[Outcome, float]], relations: Sequence[str]) -> list[tuple[int, float]]:
    """Return the points of one class; one alone is joined to the point before it, or behind it."""
    places = [place for place, (o, _) in enumerate(points) if _related(o) in relations]
    if len(places) == 1 < len(points):
        places = sorted([max(places[0], 1) - 1, max(places[0], 1)])
    return [(points[place][0].geometry.aggregators, points[place][1]) for place in places]


def _named(numbers: Sequence[int]) -> list[tuple[float, str]] | None:
    """Return ticks at the numbers of aggregators, the larger of two that are too close; None: they are too many."""
    if len(numbers) > _MOST_NAMED:
        return None
    apart = (numbers[-1] / numbers[0]) ** _ROOM
    kept = [
        one for one, larger in zip(numbers, [*numbers[1:], None], strict=True) if not larger or larger > one * apart
    ]
    return [(one, f"{one:,}") for one in kept]


def _panel(outcomes: Sequence[Outcome], title: str, values: Sequence[float], counts: bool, panel: Panel) -> None:
    """Draw one quantity: a colour for each variant, a mark for how aggregators match servers.

    `values` : of each outcome; `counts` go from 0 upwards by powers of ten.
    """
    labels = list(dict.fromkeys(map(_label, outcomes)))
    for index, label in enumerate(labels):
        points = [(o, value) for o, value in zip(outcomes, values, strict=True) if _label(o) == label]
        width, size = _between(_WIDTHS, index, len(labels)), _between(_SIZES, index, len(labels))
        colour = look(index).colour
        for dash, relations in _CLASSES.items():
            joined = _joined(points, relations)
            panel.line([x for x, _ in joined], [y for _, y in joined], Look(colour, dash), width=width)
        for o, value in points:
            own = Look(colour, "", _MARKS[_related(o)], size=size, hollow=True)
            panel.line([o.geometry.aggregators], [value], own)
    y = (
        Axis(scale="symlog", low=-0.4, high=3 * max(1, *values), grid=True)
        if counts
        else Axis(grid=True, form=lambda value: f"{value:,.0f}")
    )
    ticks = _named(sorted({o.geometry.aggregators for o in outcomes}))
    x = Axis(label="aggregators", scale="log2", grid=True, ticks=ticks, form=lambda value: f"{value:,.0f}")  # no power
    panel.frame(x, y, title)


def _keys(outcomes: Sequence[Outcome]) -> list[tuple[str, Look, float]]:
    """Return the meaning of colours, marks and lines."""
    labels = list(dict.fromkeys(map(_label, outcomes)))
    used = {_related(o) for o in outcomes}
    return [
        *(
            (label, Look(look(index).colour), _between(_WIDTHS, index, len(labels)))
            for index, label in enumerate(labels)
        ),
        *(
            (
                f"{name} (aggregators to servers)",
                Look("soft", next(dash for dash, relations in _CLASSES.items() if name in relations), mark),
                1.5,
            )
            for name, mark in _MARKS.items()
            if name in used
        ),
    ]


def draw(outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw the outcomes of a sweep.

    Parameters
    ----------
    outcomes : at least one, all of one file system and region.
    path : written whole or not at all; SVG, PNG or PDF by its suffix.

    Raises
    ------
    ArgumentError
        The suffix is another one.
    FileSystemError
        The file cannot be written.
    """
    one = outcomes[0]
    panels = [
        partial(_panel, outcomes, title, values, counts)
        for title, values, counts in (
            ("lock requests", [o.total_lock_requests for o in outcomes], True),
            ("conflicts", [o.total_conflicts for o in outcomes], True),
            ("predicted MiB/s", [o.bandwidth_bytes_s / _MIB for o in outcomes], False),
            (
                "predicted bandwidth, % of the fastest method with as many aggregators",
                _share_of_fastest(outcomes),
                False,
            ),
        )
    ]
    region, stripe, window = (
        size_text(count, exact=True)
        for count in (
            one.geometry.end_bytes - one.geometry.start_bytes,
            one.geometry.stripe_size_bytes,
            one.window_bytes,
        )
    )
    heading = (
        f"{one.file_system.name}{', caches' if one.file_system.caches else ''}, {one.geometry.servers} servers, "
        f"{one.operation} of {region} in stripes of {stripe}, windows of {window}, by lock model"
    )
    save(
        Chart(
            name="locks",
            panels=[panels[:2], panels[2:]],
            width=11.5,
            height=9,
            heading=heading,
            legend="below",
            columns=3,
            keys=_keys(outcomes),
        ),
        path,
    )
