"""The picture of ``scaling``: a column per series; bandwidth, ratio to native and memory, logarithmic axes.

Colours are those of M. Okabe and K. Ito ("Color Universal Design", 2008); markers and dashes tell the lines apart
without colour. This library is drawn solid, native dashed, and of each native MPI-IO only the better of default and
tuned hints.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["families", "plot_scaling"]

_COLOURS = {"ours_openmpi": "#0072B2", "ours_mpich": "#56B4E9", "ompio": "#E69F00", "ompi_romio": "#D55E00",
            "mpich_romio": "#CC79A7"}
_MARKERS = {"ours_openmpi": "o", "ours_mpich": "s", "ompio": "^", "ompi_romio": "v", "mpich_romio": "D"}
_TUNED = "_tuned"
_HEADINGS = {
    "ranks_inter64": "64 B interleaved", "ranks_inter4096": "4 KiB interleaved",
    "pieces_inter": "interleaved, fixed file size", "pieces_random": "random, fixed file size",
}


def families(values: dict[str, float], *, largest: bool = True) -> dict[str, float]:
    """Return one value per MPI-IO of {peer: value}: the largest (or smallest) of default and tuned."""
    found: dict[str, float] = {}
    choose = max if largest else min
    for name, value in values.items():
        family = name.removesuffix(_TUNED)
        found[family] = choose(found[family], value) if family in found else value
    return found


def _draw(axes: Any, xs: Sequence[int], values: Sequence[dict[str, float]], titles: dict[str, str]) -> None:
    """Draw a line per name of `values`, which has one dictionary per place."""
    for name in titles:
        places = [x for x, of_row in zip(xs, values, strict=True) if name in of_row]
        if not places:
            continue
        heights = [of_row[name] for of_row in values if name in of_row]
        ours = name.startswith("ours")
        axes.plot(places, heights, label=titles[name], color=_COLOURS.get(name, "#000000"),
                  marker=_MARKERS.get(name, "x"), markersize=4.5, linestyle="-" if ours else "--",
                  linewidth=1.8 if ours else 1.1)


def _bandwidth(axes: Any, rows: Sequence[dict[str, Any]], xs: Sequence[int], titles: dict[str, str]) -> None:
    _draw(axes, xs, [families(row["mbytes_per_s"]) for row in rows], titles)


def _ratio(axes: Any, results: Sequence[dict[str, Any]], axis: str, titles: dict[str, str]) -> None:
    for operation, style in (("write", "-"), ("read", ":")):
        rows = [row for row in results if row["op"] == operation]
        for name in titles:
            there = [row for row in rows if name in row["ratio_native_by_peer"]]
            if not there:
                continue
            xs = [row[axis] for row in there]
            axes.plot(xs, [row["ratio_native_by_peer"][name] for row in there], linestyle=style,
                      color=_COLOURS.get(name, "#000000"), marker=_MARKERS.get(name, "x"), markersize=4,
                      linewidth=1.5, markerfacecolor=None if operation == "write" else "white")
            spreads = [row["spread_ratio_native"].get(name) for row in there]
            if all(spreads):
                axes.fill_between(xs, [s[0] for s in spreads if s], [s[1] for s in spreads if s], alpha=0.15,
                                  color=_COLOURS.get(name, "#000000"), linewidth=0)
    axes.axhline(1, color="black", linewidth=0.9)


def _memory(axes: Any, rows: Sequence[dict[str, Any]], titles: dict[str, str]) -> None:
    xs = [row["pieces"] for row in rows]
    values = [families({name: value / 2**20 for name, value in row["memory_growth_bytes"].items() if value},
                       largest=False) for row in rows]
    _draw(axes, xs, values, titles)
    claims = [max(row["memory_claim_bytes"].values(), default=0) / 2**20 for row in rows]
    if any(claims):
        axes.plot(xs, claims, color="black", linewidth=1, linestyle="-.", label="collective buffers + 2 MiB")
        axes.legend(handles=axes.lines[-1:], fontsize=8, frameon=False)


def _format_axes(axes: Any, axis: str, rows: Sequence[dict[str, Any]]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = min(row[axis] for row in rows), max(row[axis] for row in rows)
    axes.set_xlim(low / 1.3, high * 1.3)  # of all panels of the column alike
    if axis == "ranks":
        ticks = sorted({row["ranks"] for row in rows})
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_ylim()
    if high < 50 * low:  # less than two decades: more ticks than the powers of ten
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(which="major", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)


def _column(axes: Sequence[Any], series: str, results: Sequence[dict[str, Any]], titles: dict[str, str]) -> None:
    """Draw one series into four axes from top to bottom; the last is for memory, and only for pieces."""
    rows = [row for row in results if row["series"] == series]
    axis = "pieces" if series.startswith("pieces") else "ranks"
    for place, operation in enumerate(("write", "read")):
        of_operation = [row for row in rows if row["op"] == operation]
        _bandwidth(axes[place], of_operation, [row[axis] for row in of_operation], titles)
    _ratio(axes[2], rows, axis, {name: title for name, title in titles.items() if name.startswith("ours")})
    if axis == "pieces":
        _memory(axes[3], [row for row in rows if row["op"] == "write"], titles)
        axes[3].set_ylabel("memory beyond the\nuser's buffers, MiB a rank")
    for one in axes[: 4 if axis == "pieces" else 3]:
        _format_axes(one, axis, rows)
        one.set_xlabel("pieces in the file" if axis == "pieces" else "ranks")
    size = rows[0]["file_bytes"] / 1e6
    extra = f", {rows[0]['ranks']} ranks" if axis == "pieces" else ""
    axes[0].set_title(f"{_HEADINGS.get(series, series)}\n{size:,.0f} MB{extra}", fontsize=9.5)


def plot_scaling(results: Sequence[dict[str, Any]], titles: dict[str, str], path: Path) -> None:
    """Draw the results into `path` (.svg or .png).

    Parameters
    ----------
    results : as `scaling.summarize` gives them
    titles : {peer: words for people}
    path : file to write
    """
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    shown = {name: title for name, title in titles.items() if not name.endswith(_TUNED)}
    series = list(dict.fromkeys(row["series"] for row in results))
    with mpl.rc_context({"font.size": 9, "svg.hashsalt": "mpiio_ext"}):
        figure, grid = plt.subplots(4, len(series), figsize=(1 + 3.3 * len(series), 11.5), squeeze=False)
        for column, name in enumerate(series):
            _column(list(grid[:, column]), name, results, shown)
            if not name.startswith("pieces"):
                grid[3, column].set_axis_off()
        for row, label in enumerate(("write, MB/s", "read, MB/s",
                                     "bandwidth ÷ best native\n(write solid, read dotted)")):
            grid[row, 0].set_ylabel(label)
        labelled = [pair for axes in grid.flat for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
        entries = {text: line for line, text in labelled if text in shown.values()}
        columns = max(1, min(5, 3 * len(series) // 2))
        if entries:
            figure.legend(list(entries.values()), list(entries), loc="upper center", frameon=False,
                          ncols=columns)
        figure.tight_layout(rect=(0, 0, 1, 0.985 - 0.018 * -(-len(entries) // columns)))
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
        plt.close(figure)
