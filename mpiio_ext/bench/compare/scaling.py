"""Measure this library and native MPI-IO over the number of ranks and of pieces.

Not an MPI program: it launches the micro-benchmark of ``compare`` under each peer, peers interleaved round by round.
The number of ranks grows at a fixed file size, and the number of pieces grows from 10^3 to 10^8 at a fixed file size,
down to pieces of one byte. Native is the best of each MPI's own MPI-IO, with default hints and tuned. A native peer
that exceeds the limit of time or memory is dropped from there on. Memory beyond the user's buffers is measured in
launches of their own, by kind. Figures are medians.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from mpiio_ext.bench.compare.launches import (
    ACCESSES,
    Case,
    Outcome,
    console_of_results,
    describe_environment,
    launch,
    run_benchmark,
    scratch_file,
)
from mpiio_ext.bench.compare.peers import Installation, Peer, peers_of, some_installations
from mpiio_ext.common.commands import HELP, Command, Put, json_file_option, json_option, json_result
from mpiio_ext.common.options import Counts, Duration, Size
from mpiio_ext.common.results import Spread

#: Name in the results -> (pattern, block in bytes or 0 where it varies, words for people).
SERIES: dict[str, tuple[str, int, str]] = {
    "ranks_inter64": ("inter", 64, "interleaved 64 B"),
    "ranks_inter4096": ("inter", 4096, "interleaved 4 KiB"),
    "pieces_inter": ("inter", 0, "interleaved"),
    "pieces_random": ("random", 0, "random"),
}
RANKS = (1, 2, 3, 4, 6, 8, 12, 16)
#: The user's own list of the random pattern is 8 bytes a piece and its making takes time: it ends earlier.
_RANDOM_PIECES_MOST = 10**7
#: Beyond the collective buffers, what a rank may need: the claim that the results are compared with.
CLAIM_BYTES = 2 << 20
#: What the columns of the results mean; part of the JSON.
UNITS = {
    "ranks": "processes",
    "pieces": "contiguous pieces of the file, all ranks together",
    "block_bytes": "bytes of a piece",
    "file_bytes": "bytes",
    "seconds": "seconds of one write or read, first rank to begin to last to end, median",
    "mbytes_per_s": "10^6 bytes per second, median",
    "spread_mbytes_per_s": "10^6 bytes per second, smallest and largest",
    "ratio_native": "mpiio_ext on the running Python's MPI over the best native, medians",
    "ratio_native_by_peer": "mpiio_ext over the best native, medians",
    "spread_ratio_native": "the same within each round, smallest and largest",
    "memory_growth_bytes": "bytes; peak of a rank's resident memory over what it was before the open, largest rank",
    "private_growth_bytes": "bytes; the same for private memory, seen by sampling twice a millisecond",
    "shared_growth_bytes": "bytes; the same for shared memory, which the ranks of a node have in common",
    "mapped_file_growth_bytes": "bytes; the same for mapped files, libraries among them",
    "collective_buffers_bytes": "bytes; cb_nodes x cb_buffer_size x mpiox_buffers, the hints in force",
    "memory_claim_bytes": f"bytes; the collective buffers and {CLAIM_BYTES}; of regular patterns only",
}
_KINDS = ("memory_growth_bytes", "private_growth_bytes", "shared_growth_bytes", "mapped_file_growth_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of a measurement: see ``--help``; sizes in bytes, limits in seconds and bytes."""

    series: tuple[str, ...]
    rank_counts: tuple[int, ...]
    ranks: int
    rank_series_bytes: int
    pieces_series_bytes: int
    pieces_most: int
    rounds: int
    repeats: int
    access: str
    limit_s: float
    memory_limit_bytes: int
    file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place on the horizontal axis of a series; sizes in bytes."""

    series: str
    pattern: str
    ranks: int
    block_bytes: int
    file_bytes: int

    @property
    def pieces(self) -> int:
        """Contiguous pieces of the file, all ranks together."""
        return self.file_bytes // self.block_bytes

    @property
    def title(self) -> str:
        """For people."""
        return f"{SERIES[self.series][2]}, {self.ranks} ranks, {self.pieces:,} pieces of {self.block_bytes:,} B"


@dataclass(slots=True)
class Samples:
    """The measurements of one peer at one point.

    Attributes
    ----------
    rounds : records of the micro-benchmark, one list per round
    memory_bytes : {kind: bytes}, largest of all launches
    hints : in force in the launch that measured memory
    reason : why there are no figures, "" when there are
    """

    rounds: list[list[dict[str, Any]]] = field(default_factory=list)
    memory_bytes: dict[str, int] = field(default_factory=dict)
    hints: dict[str, str] = field(default_factory=dict)
    reason: str = ""

    def seconds(self, operation: str) -> list[float]:
        """Return the seconds of every repetition of "write" or "read"."""
        return [record[f"{operation}_s"] for records in self.rounds for record in records]

    def mbytes_per_s(self, operation: str) -> list[float]:
        """Return the same as 10^6 bytes per second."""
        return [record["bytes"] / record[f"{operation}_s"] / 1e6 for records in self.rounds for record in records]

    def of_round(self, k: int, operation: str) -> float | None:
        """Return the median of one round in 10^6 bytes per second, None if the round has no measurement."""
        if k >= len(self.rounds) or not self.rounds[k]:
            return None
        figures: list[float] = [record["bytes"] / record[f"{operation}_s"] / 1e6 for record in self.rounds[k]]
        return statistics.median(figures)


Found = dict[tuple[Point, str], Samples]
Run = Callable[[Peer, Case], Outcome]


def plan(options: Options) -> list[Point]:
    """Return the points, in the order of the measurement: within a series from easy to hard."""
    points = []
    for series in options.series:
        pattern, block, _ = SERIES[series]
        if block:
            points += [
                Point(
                    series=series,
                    pattern=pattern,
                    ranks=ranks,
                    block_bytes=block,
                    file_bytes=options.rank_series_bytes // (block * ranks) * block * ranks,
                )
                for ranks in options.rank_counts
            ]
            continue
        most = min(options.pieces_most, _RANDOM_PIECES_MOST) if pattern == "random" else options.pieces_most
        pieces = 1000
        while pieces <= min(most, options.pieces_series_bytes):
            size = options.pieces_series_bytes // pieces
            points.append(
                Point(series=series, pattern=pattern, ranks=options.ranks, block_bytes=size, file_bytes=size * pieces)
            )
            pieces *= 10
    return points


def _case(point: Point, peer: Peer, options: Options, *, memory: bool) -> Case:
    return Case(
        title=point.title,
        pattern=("--pattern", point.pattern, "--block", str(point.block_bytes)),
        ranks=point.ranks,
        file_bytes=point.file_bytes,
        file=options.file,
        access=options.access,
        repeats=1 if memory else options.repeats,
        memory=memory,
        limit_s=options.limit_s if peer.native else 10 * options.limit_s,
        memory_limit_bytes=options.memory_limit_bytes if peer.native else 0,
    )


def _largest(into: dict[str, int], records: Iterable[dict[str, Any]]) -> None:
    for record in records:
        for kind in _KINDS:
            if kind in record:
                into[kind] = max(into.get(kind, 0), record[kind])


def _take(samples: Samples, outcome: Outcome, *, memory: bool) -> None:
    """Add the results of a launch; figures that are already there survive a later failure of the same peer."""
    if outcome.reason:
        samples.reason = outcome.reason
        return
    _largest(samples.memory_bytes, outcome.records)
    if memory:
        samples.hints = outcome.hints
    else:
        samples.rounds.append(outcome.records)


def launches_of(points: Sequence[Point], peers: Callable[[int], list[Peer]], options: Options) -> int:
    """Return how many launches `measure` does at most."""
    return sum(len(peers(point.ranks)) * (options.rounds + point.series.startswith("pieces")) for point in points)


def measure(
    points: Sequence[Point],
    peers: Callable[[int], list[Peer]],
    options: Options,
    advance: Callable[[str], None],
    run: Run = run_benchmark,
    found: Found | None = None,
    keep: Callable[[Point], None] = lambda _: None,
) -> Found:
    """Run everything.

    Parameters
    ----------
    points : in the order of measurement
    peers : the peers for a number of ranks
    options : limits and numbers of repetitions
    advance : called before each launch with words for people
    run : launches the micro-benchmark
    found : gets the result, for who is interrupted; None: a new one
    keep : called with each point once it is done
    """
    found = {} if found is None else found
    dropped: dict[tuple[str, str], str] = {}
    for point in points:
        there = peers(point.ranks)
        kinds = [False] * options.rounds + [True] * point.series.startswith("pieces")
        for peer in there:
            found[point, peer.name] = Samples(reason=dropped.get((point.series, peer.name), ""))
        for k, memory in enumerate(kinds):
            for i in range(len(there)):
                peer = there[(i + k) % len(there)]  # the order rotates from round to round
                samples = found[point, peer.name]
                advance(f"{point.title}: {peer.title}")
                if samples.reason:
                    continue
                outcome = run(peer, _case(point, peer, options, memory=memory))
                _take(samples, outcome, memory=memory)
                if outcome.exhausted and peer.native:
                    axis = f"{point.ranks} ranks" if not point.series.startswith("pieces") else f"{point.pieces} pieces"
                    dropped[point.series, peer.name] = f"dropped at {axis}: {outcome.reason}"
        keep(point)
    return found


# ---- results ---------------------------------------------------------------------------------------------------------


def collective_buffers_bytes(hints: dict[str, str]) -> int | None:
    """Return the size of all collective buffers by the hints in force, None if the hints do not give it."""
    try:
        return int(hints["cb_nodes"]) * int(hints["cb_buffer_size"]) * int(hints["mpiox_buffers"]) or None
    except (KeyError, ValueError):
        return None


def _ratios(
    samples: dict[str, Samples], speed: dict[str, float], peers: Sequence[Peer], operation: str, rounds: int
) -> dict[str, Any]:
    native = [peer.name for peer in peers if peer.native]
    ours = [peer.name for peer in peers if peer.ours and peer.name in speed]
    best = max((name for name in native if name in speed), key=lambda name: speed[name], default=None)
    within: dict[str, list[float]] = {name: [] for name in ours}
    for k in range(rounds):
        fastest = max((v for name in native if (v := samples[name].of_round(k, operation)) is not None), default=None)
        for name in ours:
            mine = samples[name].of_round(k, operation)
            if mine is not None and fastest is not None:
                within[name].append(mine / fastest)
    by_peer = {name: speed[name] / speed[best] for name in ours} if best else {}
    return {
        "best_native": best,
        "ratio_native": by_peer.get(next((peer.name for peer in peers if peer.ours), "")),
        "ratio_native_by_peer": by_peer,
        "spread_ratio_native": {name: [min(values), max(values)] for name, values in within.items() if values},
    }


def _memory(samples: dict[str, Samples], peers: Sequence[Peer], pattern: str) -> dict[str, Any]:
    """Return the columns on memory; nothing is claimed of irregular patterns, whose datatypes are lists themselves."""
    entry: dict[str, Any] = {
        kind: {name: s.memory_bytes[kind] for name, s in samples.items() if kind in s.memory_bytes} for kind in _KINDS
    }
    buffers = {
        peer.name: size
        for peer in peers
        if peer.ours and (size := collective_buffers_bytes(samples[peer.name].hints)) is not None
    }
    entry["collective_buffers_bytes"] = buffers
    entry["memory_claim_bytes"] = {name: size + CLAIM_BYTES for name, size in buffers.items() if pattern != "random"}
    return entry


def summarize(
    found: Found, points: Sequence[Point], peers: Callable[[int], list[Peer]], rounds: int
) -> list[dict[str, Any]]:
    """Return the `results` list: one entry per point and operation; UNITS describes each column."""
    results = []
    for point in points:
        there = peers(point.ranks)
        samples = {peer.name: found[point, peer.name] for peer in there}
        for operation in ("write", "read"):
            spreads = {name: Spread.of(s.mbytes_per_s(operation)) for name, s in samples.items() if s.rounds}
            speed = {name: spread.median for name, spread in spreads.items()}
            results.append(
                {
                    "series": point.series,
                    "pattern": point.pattern,
                    "ranks": point.ranks,
                    "pieces": point.pieces,
                    "block_bytes": point.block_bytes,
                    "file_bytes": point.file_bytes,
                    "op": operation,
                    "seconds": {name: statistics.median(samples[name].seconds(operation)) for name in speed},
                    "mbytes_per_s": speed,
                    "spread_mbytes_per_s": {name: [spread.low, spread.high] for name, spread in spreads.items()},
                    **_ratios(samples, speed, there, operation, rounds),
                    **_memory(samples, there, point.pattern),
                    "absent": {name: s.reason for name, s in samples.items() if s.reason},
                }
            )
    return results


def above_claim(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each point where this library's memory is above the claim."""
    lines = []
    for row in results:
        for name, most in row["memory_claim_bytes"].items() if row["op"] == "write" else ():
            if row["memory_growth_bytes"][name] > most:
                lines.append(
                    f"{name}, {SERIES[row['series']][2]}, {row['pieces']:,} pieces: "
                    f"{row['memory_growth_bytes'][name]:,} B a rank where {most:,} B are claimed"
                )
    return lines


def _print(results: Sequence[dict[str, Any]], peers: Sequence[Peer]) -> None:
    console = console_of_results()
    ours = [peer for peer in peers if peer.ours]
    table = Table(
        title="collective bandwidth, MB/s (medians), and memory beyond the buffers, MiB a rank",
        box=None,
        header_style="bold",
    )
    for heading in ("pattern", "ranks", "pieces", "block, B", "op"):
        table.add_column(heading, justify="left" if heading in ("pattern", "op") else "right", no_wrap=True)
    for heading in [
        "best native",
        "",
        *(peer.title for peer in ours),
        *("÷ native" for _ in ours),
        *("MiB" for _ in ours),
        "MiB, native",
    ]:
        table.add_column(heading, justify="right" if heading else "left")
    for row in results:
        best, speed, memory = row["best_native"], row["mbytes_per_s"], row["memory_growth_bytes"]
        cells = [f"{speed[best]:,.0f}" if best else "–", best or "–"]
        cells += [f"{speed[peer.name]:,.0f}" if peer.name in speed else "–" for peer in ours]
        ratios = row["ratio_native_by_peer"]
        cells += [f"{ratios[peer.name]:.2f}" if peer.name in ratios else "–" for peer in ours]
        cells += [f"{memory[name] / 2**20:.1f}" if name in memory else "–" for name in [p.name for p in ours] + [best]]
        table.add_row(
            SERIES[row["series"]][2],
            str(row["ranks"]),
            f"{row['pieces']:,}",
            f"{row['block_bytes']:,}",
            row["op"],
            *cells,
        )
    console.print(table)
    for line in dict.fromkeys(
        f"{name}, {row['series']}: {reason}" for row in results for name, reason in row["absent"].items()
    ):
        console.print(line, highlight=False)
    if any(row["memory_claim_bytes"] for row in results):
        above = above_claim(results)
        for line in above or [
            f"memory: interleaved, at any number of pieces at most the collective buffers and {CLAIM_BYTES:,} B a rank"
        ]:
            console.print(line, highlight=False)


def run_scaling(options: Options, *, put: Put | None, plot_path: Path | None) -> list[dict[str, Any]]:
    """Measure, print, and write the files; returns the results list.

    Interrupted, also by SIGTERM, it prints and writes what is there, and raises KeyboardInterrupt.
    """
    installations = some_installations()

    def peers(ranks: int) -> list[Peer]:
        return [peer for installation in installations for peer in peers_of(installation, ranks)]

    points = plan(options)
    titles = {peer.name: peer.title for peer in peers(options.ranks)}
    found: Found = {}

    results = launch(
        "scaling",
        launches_of(points, peers, options),
        put,
        measure=lambda advance, keep: measure(points, peers, options, advance, run_benchmark, found, keep),
        summarize=lambda there: summarize(found, points if there is None else there, peers, options.rounds),
        begun=lambda: [point for point in points if any(found[key].rounds for key in found if key[0] == point)],
        title=lambda point: point.title,
        document=lambda: {
            "environment": _environment(installations, options),
            "units": UNITS,
            "peers": titles,
            "series": {name: SERIES[name][2] for name in options.series},
        },
        show=lambda results, _: _print(results, peers(options.ranks)),
    )
    if plot_path is not None:
        from mpiio_ext.bench.compare.scaling_plot import plot_scaling

        plot_scaling(results, titles, plot_path)
    return results


def _environment(installations: Sequence[Installation], options: Options) -> dict[str, Any]:
    return describe_environment(
        installations,
        options.file.parent,
        rounds=options.rounds,
        repeats_per_round=options.repeats,
        access=options.access,
        native_limit_s=options.limit_s,
        native_memory_limit_bytes=options.memory_limit_bytes,
    )


@click.command(cls=Command, name="scaling", context_settings=HELP, help=__doc__)
@click.option("--quick", is_flag=True, help="Smaller files, 1, 2 and 4 ranks, up to 10^6 pieces, one round: minutes.")
@click.option("--series", multiple=True, type=click.Choice(list(SERIES)), help="Only these; repeatable.")
@click.option(
    "--rank-counts", type=Counts(least=1), help="Ranks of the series over ranks.  [default: 1,2,3,4,6,8,12,16]"
)
@click.option("--ranks", default=4, show_default=True, type=click.IntRange(1), help="Ranks of the series over pieces.")
@click.option(
    "--size",
    "rank_series_bytes",
    type=Size(1 << 16),
    help="Size of the file of the series over ranks.  [default: 96MiB]",
)
@click.option(
    "--pieces-size",
    "pieces_series_bytes",
    type=Size(1000),
    help="Size of the file of the series over pieces.  [default: 100MB]",
)
@click.option("--pieces", "pieces_most", type=click.IntRange(1000), help="Most pieces.  [default: 100000000]")
@click.option("--rounds", type=click.IntRange(1), help="Launches per point and peer.  [default: 2]")
@click.option("--repeats", type=click.IntRange(1), help="Repetitions inside a launch.  [default: 2]")
@click.option("--access", type=click.Choice(ACCESSES), default=ACCESSES[0], show_default=True, help="Calls to use.")
@click.option(
    "--path",
    type=click.Path(path_type=Path),
    default=Path("/dev/shm"),
    show_default=True,
    help="Folder on the file system to measure.",
)
@click.option(
    "--native-limit",
    "limit_s",
    default="20s",
    show_default=True,
    type=Duration(least=1),
    help="Time that a native peer may take per launch; otherwise it is dropped from there on.",
)
@click.option(
    "--memory-limit",
    "memory_limit_bytes",
    default="2GiB",
    show_default=True,
    type=Size(1 << 20),
    help="Bytes that a rank of a native peer may allocate; otherwise it is dropped from there on.",
)
@json_option("Print the results as JSON; the table goes to standard error.")
@json_file_option()
@click.option("--plot", "plot_path", type=click.Path(path_type=Path, dir_okay=False), help="Draw them (.svg or .png).")
def command(
    *, quick: bool, path: Path, as_json: bool, output: Path | None, plot_path: Path | None, **given: Any
) -> None:
    """Parse the options and run; ends the process with one line on an error. `given` are fields of `Options`."""
    usual = {
        "series": tuple(SERIES),
        "rank_counts": (1, 2, 4) if quick else RANKS,
        "rank_series_bytes": 3 << (22 if quick else 25),
        "pieces_series_bytes": 10**7 if quick else 10**8,
        "pieces_most": 10**6 if quick else 10**8,
        "rounds": 1 if quick else 2,
        "repeats": 1 if quick else 2,
    }
    given |= {name: given[name] or value for name, value in usual.items()}
    with json_result(as_json, output) as put, scratch_file(path, "scaling") as file:
        run_scaling(Options(file=file, **given), put=put if as_json else None, plot_path=plot_path)
