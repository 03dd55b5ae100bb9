"""Tables, targets and picture of what delegates.py has measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

MIB = 1 << 20
#: Name -> (title, options of the micro-benchmark). Small pieces first, as in the picture.
PATTERNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "inter8": ("interleaved 8 B", ("--pattern", "inter", "--block", "8")),
    "inter64": ("interleaved 64 B", ("--pattern", "inter", "--block", "64")),
    "inter512": ("interleaved 512 B", ("--pattern", "inter", "--block", "512")),
    "inter4096": ("interleaved 4 KiB", ("--pattern", "inter", "--block", "4096")),
    "inter65536": ("interleaved 64 KiB", ("--pattern", "inter", "--block", "65536")),
    "random_gaps": ("random pieces of 512 B with gaps", ("--pattern", "random_gaps", "--block", "512")),
    "blocks3d": ("3-D blocks of doubles", ("--pattern", "blocks3d")),
    "contiguous": ("contiguous", ("--pattern", "contiguous", "--block", str(MIB))),
}
OPERATIONS = ("write", "rewrite", "read")
#: Group of ways -> title; of a group with several ways the fastest counts.
GROUPS = {
    "native_independent": "native independent",
    "native_collective": "native collective",
    "ours_independent": "mpiio_ext independent",
    "ours_collective": "mpiio_ext collective",
    "delegates": "mpiio_ext independent, delegates",
}
#: Patterns whose independent writes have targets.
_SMALL = ("inter64", "inter512", "inter4096")


def print_latency(rows: Sequence[dict[str, Any]]) -> None:
    """Print the table of latencies, and 1 MiB as part of memcpy's speed."""
    print("\nmicroseconds, one rank and one delegate; medians over the rounds")
    print(f"{'MPI':18s} {'':14s} {'median':>10s} {'90 %':>10s} {'99 %':>10s}")
    for row in rows:
        if row["reason"]:
            print(f"{row['mpi']:18s} not measured: {row['reason']}")
            continue
        print(f"{row['mpi']:18s} {row['name']:14s}" + "".join(f" {row[key]:10.2f}" for key in
                                                                ("median_us", "p90_us", "p99_us")))


def print_rows(rows: Sequence[dict[str, Any]], calls: str) -> None:
    """Print the table of one kind of calls."""
    print(f"\nMB/s until the file is closed, medians; {calls} calls (* on a smaller file); ÷: delegates over that way")
    heads = [title.replace("mpiio_ext ", "") for title in GROUPS.values()]
    print(f"{'pattern':34s} {'op':8s}" + "".join(f"{head:>24s}" for head in heads))
    for row in rows:
        cells = []
        for group in GROUPS:
            value = row["mbytes_per_s"].get(group)
            cells.append("–" if value is None else f"{value:,.0f}{'*' if group in row['scaled_bytes'] else ''}")
        print(f"{PATTERNS[row['pattern']][0]:34s} {row['op']:8s}" + "".join(f"{cell:>24s}" for cell in cells))
        over = [f"{median:.2f} ({low:.2f}–{high:.2f})" if median is not None else "" for group in GROUPS
                for median in [row["delegates_over"].get(group)]
                for low, high in [row["spread_delegates_over"].get(group, (0, 0))]]
        if row["delegates_over"]:
            print(f"{'':34s} {'÷':8s}" + "".join(f"{cell:>24s}" for cell in over))
        for name, reason in row["absent"].items() if row["op"] == "write" else ():
            print(f"{'':34s} {name}: {reason}")


def _by_way(row: dict[str, Any], group: str) -> str:
    """Return the ratios of the delegates to every way of a group, in words; medians."""
    mine = row["mbytes_per_s_by_way"][row["ways"]["delegates"]]
    return ", ".join(f"{mine / speed:.1f} × {name.split(':')[1]}"
                     for name, speed in row["mbytes_per_s_by_way"].items() if name.split(":")[0] == group)


def verdicts(document: dict[str, Any]) -> list[tuple[str, bool, str]]:
    """Return (target, met, what was found) of everything that was measured."""
    found = []
    for row in document["bandwidth"]:
        over = row["delegates_over"]
        if row["op"] != "write" or not over or row["calls"] != "whole":
            continue
        title = PATTERNS[row["pattern"]][0]
        if row["pattern"] in _SMALL:
            if "native_independent" in over:
                found.append((f"{title}: write, ÷ native independent ≥ 10", over["native_independent"] >= 10,
                              _by_way(row, "native_independent")))
            if "ours_collective" in over:
                found.append((f"{title}: write, ÷ own collective ≥ 0.5", over["ours_collective"] >= 0.5,
                              f"{over['ours_collective']:.2f}"))
        if row["pattern"] == "contiguous" and "ours_independent" in over:
            found.append((f"{title}: write, ÷ own independent ≥ 0.95", over["ours_independent"] >= 0.95,
                          f"{over['ours_independent']:.2f}"))
    for row in document["requests"]:
        part = row.get("whole_stripe_fraction_at_least")
        title = f"{PATTERNS[row['pattern']][0]}, {row['calls']} calls"
        found.append((f"{title}: bytes in requests of a stripe or more ≥ 95 %",
                      part is not None and part >= 0.95, row["reason"] or f"{100 * (part or 0):.2f} %"))
    for row in document["close"]:
        part = row["close_fraction"]
        found.append((f"{PATTERNS[row['pattern']][0]}: closing a file of 4 times the caps < 20 % of the run",
                      part is not None and part < 0.2, row["reason"] or f"{100 * (part or 0):.1f} %"))
    for row in document["memory"]:
        over_cap = row.get("segment_over_cap")
        text = row["reason"] or (
            f"{100 * (over_cap or 0):.1f} % of the cap; beside it the process has "
            f"{row['process_peak_bytes'] / 1e6:.1f} MB ({row['process_at_start_bytes'] / 1e6:.1f} at its start)")
        found.append((f"a file of {row['file_bytes'] / MIB:.0f} MiB through caps of {row['cap_bytes'] / MIB:.0f} MiB: "
                      "memory ≤ cap + 1 %", over_cap is not None and over_cap <= 1.01, text))
    return found + latency_verdicts(document["latency"])


def latency_verdicts(rows: Sequence[dict[str, Any]]) -> list[tuple[str, bool, str]]:
    """Return the same of the latencies."""
    found = []
    for mpi in dict.fromkeys(row["mpi"] for row in rows if not row["reason"]):
        median = {row["name"]: row["median_us"] for row in rows if row["mpi"] == mpi}
        found.append((f"{mpi}: round trip ≤ 10 µs", median["ping"] <= 10, f"{median['ping']:.2f} µs"))
        found.append((f"{mpi}: round trip ≤ 1/10 of a spawned child's", median["ping"] <= median["spawned_child"] / 10,
                      f"{median['ping']:.2f} of {median['spawned_child']:.2f} µs"))
        for name in ("write_1MiB", "read_1MiB"):
            part = median["memcpy_1MiB"] / median[name]
            found.append((f"{mpi}: {name} ≥ 60 % of memcpy's speed", part >= 0.6, f"{100 * part:.0f} %"))
    return found


def plot(rows: Sequence[dict[str, Any]], title: str, path: Path) -> None:
    """Draw the bandwidths into `path` (.svg or .png): a group of bars for each pattern and way of calling."""
    import textwrap

    from mpiio_ext.common.plots import Axis, Bars, Chart, Look, Panel, look, save

    how = {"whole": "one call", "small": "a call a piece"}
    width, panels = 0.85 / len(GROUPS), []
    for operation in ("write", "read"):
        chosen = [row for row in rows if row["op"] == operation]
        marks = []
        for k, (group, label) in enumerate(GROUPS.items()):
            there = [(x, row["mbytes_per_s"][group]) for x, row in enumerate(chosen) if group in row["mbytes_per_s"]]
            marks.append(Bars(at=[x - 0.42 + (k + 0.5) * width for x, _ in there], values=[high for _, high in there],
                              width=width, name=label, edge="ink", thin=0.3,
                              look=Look(look(k).colour, hatch="" if group.startswith("native") else "//")))
        ticks = [textwrap.fill(PATTERNS[row["pattern"]][0], 12) + f"\n({how[row['calls']]})" for row in chosen]
        panels.append([Panel(marks=marks, x=Axis(ticks=list(enumerate(ticks))),
                             y=Axis(label=f"{operation}, MB/s" + (" (with close)" if operation == "write" else ""),
                                    scale="log", grid=True))])
    save(Chart(name="delegates", panels=panels, width=10, height=7.5, heading=title, legend="above", columns=3), path)


UNITS = {
    "mbytes_per_s": "10^6 bytes per second until the file is closed, median over all repetitions, by group",
    "mbytes_per_s_by_way": "the same by group and peer; of a group with several the fastest is in mbytes_per_s",
    "calls_only_mbytes_per_s": "10^6 bytes per second of the accesses alone, without the close",
    "spread_mbytes_per_s": "[smallest, largest] of mbytes_per_s",
    "delegates_over": "median over the rounds of mbytes_per_s with delegates over that of the group",
    "spread_delegates_over": "[smallest, largest] of them",
    "scaled_bytes": "bytes of the smaller file of a native way that would have been too slow",
    "whole_stripe_fraction_at_least": "lower bound of the part of the bytes written in requests of a stripe or more",
    "segment_peak_bytes": "bytes in memory of a delegate's shared segment, the largest delegate",
    "process_peak_bytes": "bytes in memory of its process beside the segment (RssAnon + RssFile)",
    "close_fraction": "close / (write + close)",
    "median_us": "microseconds; the median over the rounds of the median, like the other percentiles",
}
