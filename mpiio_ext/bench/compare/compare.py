"""Compare this library with every MPI-IO at hand and with the file system's limit.

Not an MPI program: it launches the same micro-benchmark under each peer, one launch per pattern, peer and round, peers
interleaved, so that a slow minute of the machine hits all of them. Figures are medians over all repetitions. A peer too
slow for the full size is measured on a smaller file and marked.

With ``--hosts`` the launches are spread over hosts with a network of their own (namespaces of this machine), and the
bytes that they send are counted (not of HDF5), beside those that had to cross from host to host.

With ``--interface hdf5`` the same is measured through HDF5: rows of an array (contiguous) and 3-D blocks, by h5py.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from mpiio_ext.bench import kernels
from mpiio_ext.bench.arguments import HintType
from mpiio_ext.bench.compare.hosts import Place, hosts
from mpiio_ext.bench.compare.launches import (
    ACCESSES,
    ArgumentError,
    Case,
    Outcome,
    console_of_results,
    describe_environment,
    on_nodes,
    run_benchmark,
    scratch_file,
)
from mpiio_ext.bench.compare.peers import (
    HDF5_PATTERNS,
    Installation,
    Peer,
    peers_of,
    some_installations,
    with_delegates,
)
from mpiio_ext.bench.kernels.pattern import MicroForm
from mpiio_ext.common.commands import Command, Put, interruptible, json_file_option, json_option, json_result, reporting
from mpiio_ext.common.options import Duration, Size
from mpiio_ext.common.printing import echo
from mpiio_ext.common.progress import progress
from mpiio_ext.common.results import Spread
from mpiio_ext.common.units import amount_text

#: Name in the results -> a form of one of the bench's patterns; those with gaps are last.
PATTERNS: dict[str, MicroForm] = {
    form.name: form
    for form in sorted(
        (form for kind in kernels.PATTERNS.values() for form in kind.micro_forms), key=lambda form: form.gaps
    )
}
#: A new file, the same file again (its blocks exist), and back.
OPERATIONS = ("write", "rewrite", "read")
_SHRINK = 4  # a peer that is too slow gets a file of 1/4, 1/16, ... of the size
_SMALLEST_BYTES = 1 << 20


@dataclass(slots=True)
class Measurement:
    """The measurements of one pattern and peer.

    Attributes
    ----------
    write_mbytes_per_s, rewrite_mbytes_per_s, read_mbytes_per_s : a new file, the same file again, and back; one figure
        per repetition, 10^6 bytes per second
    memory_growth_bytes : largest growth of a rank's resident memory during a write and a read
    open_close_s : one figure per repetition
    sent_bytes : on hosts, by operation: what all hosts sent over the network, one figure per repetition
    cross_bytes : on hosts, what had to cross from host to host with "even" file domains and at "least", which is the
        smaller of that and what crosses when each MiB lies where most of it is; see csrc/tools/bandwidth/mpiio_wire.h
    file_bytes : size of the file; less than asked for when `scaled`
    reason : why there is no figure, "" when there is one
    """

    file_bytes: int
    write_mbytes_per_s: list[float] = field(default_factory=list)
    rewrite_mbytes_per_s: list[float] = field(default_factory=list)
    read_mbytes_per_s: list[float] = field(default_factory=list)
    memory_growth_bytes: int = 0
    open_close_s: list[float] = field(default_factory=list)
    sent_bytes: dict[str, list[int]] = field(default_factory=dict)
    cross_bytes: dict[str, int] = field(default_factory=dict)
    scaled: bool = False
    reason: str = ""

    def figures(self, operation: str) -> list[float]:
        """Return the figures of "write", "rewrite" or "read"."""
        return {"write": self.write_mbytes_per_s, "rewrite": self.rewrite_mbytes_per_s, "read": self.read_mbytes_per_s}[
            operation
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of a comparison: see ``--help``.

    `nodes` 0 means the real ones, `delegates` "" no peers with delegates, `hosts` 0 this machine as it is; `hints` are
    for this library.
    """

    ranks: int
    file_bytes: int
    rounds: int
    repeats: int
    patterns: tuple[str, ...]
    file: Path
    limit_s: float
    access: str = ACCESSES[0]
    interface: str = "mpiio"
    sync: bool = False
    nodes: int = 0
    delegates: str = ""
    delegate_mode: str = "spawn"
    hosts: int = 0
    ranks_per_host: int = 0
    rate: str = ""
    hints: dict[str, str] = field(default_factory=dict)


Measurements = dict[tuple[str, str], Measurement]
Run = Callable[[Peer, Case], Outcome]


def _case(pattern: str, options: Options, *, file_bytes: int, repeats: int, limit_s: float) -> Case:
    form = PATTERNS[pattern]
    return Case(
        title=form.title,
        pattern=tuple(form.arguments),
        ranks=options.ranks,
        file_bytes=file_bytes,
        file=options.file,
        repeats=repeats,
        access=options.access,
        sync=options.sync,
        rewrite=True,
        limit_s=limit_s,
    )


def _fitting_bytes(peer: Peer, pattern: str, options: Options, run: Run) -> tuple[int, str]:
    """Return a size that the peer can do within the limit, by trying it on a small file first; or why it cannot."""
    small = max(_SMALLEST_BYTES, options.file_bytes // 64)
    begun = time.perf_counter()
    tried = run(peer, _case(pattern, options, file_bytes=small, repeats=1, limit_s=options.limit_s))
    if tried.reason:
        return small, tried.reason
    seconds = sum(record["write_s"] + record["rewrite_s"] + record["read_s"] for record in tried.records)
    overhead_s = time.perf_counter() - begun - seconds
    size = options.file_bytes
    while size > small and overhead_s + options.repeats * seconds * size / small > options.limit_s:
        size //= _SHRINK
    return max(size, small), ""


def _record(into: Measurement, records: Sequence[dict[str, Any]], *, until_close: bool) -> None:
    for record in records:
        for operation in OPERATIONS:
            seconds = record[f"{operation}_s"] + (record[f"{operation}_close_s"] if until_close else 0.0)
            into.figures(operation).append(record["bytes"] / seconds / 1e6)
            if "hosts" in record:
                into.sent_bytes.setdefault(operation, []).append(record[f"{operation}_sent_bytes"])
        if "hosts" in record:
            even = record["cross_even_bytes"]
            into.cross_bytes = {"even": even, "least": min(even, record["cross_least_bytes"])}
        into.open_close_s.append(record["open_close_s"])
        into.memory_growth_bytes = max(into.memory_growth_bytes, record["memory_growth_bytes"])


def measure(
    peers: Sequence[Peer],
    options: Options,
    advance: Callable[[str], None],
    run: Run = run_benchmark,
    found: Measurements | None = None,
    keep: Callable[[str], None] = lambda _: None,
) -> Measurements:
    """Run everything.

    Parameters
    ----------
    peers : who is compared
    options : what is run
    advance : called before each launch with words for people
    run : launches the micro-benchmark
    found : gets the result, for who is interrupted; None: a new one
    keep : called with each pattern once it is done

    Returns
    -------
    {(pattern, peer name): Measurement}
    """
    found = {} if found is None else found
    for pattern in options.patterns:
        for peer in peers:
            size, reason = options.file_bytes, ""
            if peer.native:
                size, reason = _fitting_bytes(peer, pattern, options, run)
            found[pattern, peer.name] = Measurement(file_bytes=size, scaled=size < options.file_bytes, reason=reason)
        for _ in range(options.rounds):
            for peer in peers:
                measurement = found[pattern, peer.name]
                advance(f"{PATTERNS[pattern].title}: {peer.title}")
                if measurement.reason:
                    continue
                outcome = run(
                    peer,
                    _case(
                        pattern,
                        options,
                        file_bytes=measurement.file_bytes,
                        repeats=options.repeats,
                        limit_s=4 * options.limit_s,
                    ),
                )
                measurement.reason = outcome.reason
                _record(measurement, outcome.records, until_close=peer.until_close)
        keep(pattern)
    return found


def _begun(found: Measurements, peers: Sequence[Peer], options: Options) -> list[str]:
    """Return the patterns that have figures; peers that were not reached have a reason."""
    patterns = [
        pattern
        for pattern in options.patterns
        if any(found[key].write_mbytes_per_s for key in found if key[0] == pattern)
    ]
    for pattern in patterns:
        for peer in peers:
            one = found.setdefault((pattern, peer.name), Measurement(file_bytes=options.file_bytes))
            one.reason = one.reason or ("" if one.write_mbytes_per_s else "interrupted")
    return patterns


# ---- results ---------------------------------------------------------------------------------------------------------


def summarize(found: Measurements, peers: Sequence[Peer], patterns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the `results` list: one entry per pattern and operation, medians and ratios of this library."""
    ours = next(peer.name for peer in peers if peer.ours)
    results = []
    for pattern in patterns:
        for operation in OPERATIONS:
            spreads = {
                peer.name: Spread.of(figures)
                for peer in peers
                if (figures := found[pattern, peer.name].figures(operation))
            }
            speed = {name: spread.median for name, spread in spreads.items()}
            native = {peer.name: speed[peer.name] for peer in peers if peer.native and peer.name in speed}
            best = max(native, key=lambda name: native[name], default=None)
            mine = speed.get(ours)
            results.append(
                {
                    "pattern": pattern,
                    "op": operation,
                    "present": list(speed),
                    "mbytes_per_s": speed,
                    "spread_mbytes_per_s": {name: [spread.low, spread.high] for name, spread in spreads.items()},
                    "ours": ours,
                    "best_native": best,
                    "ratio_native": mine / native[best] if mine and best else None,
                    "ratio_raw": mine / speed["raw"] if mine and "raw" in speed else None,
                    "ratio_native_by_peer": {
                        peer.name: speed[peer.name] / native[best]
                        for peer in peers
                        if peer.ours and best and peer.name in speed
                    },
                    "memory_growth_bytes": {
                        peer.name: found[pattern, peer.name].memory_growth_bytes for peer in peers if peer.name in speed
                    },
                    "open_close_s": {
                        peer.name: statistics.median(found[pattern, peer.name].open_close_s)
                        for peer in peers
                        if peer.name in speed and not peer.raw
                    },
                    "scaled_bytes": {
                        peer.name: found[pattern, peer.name].file_bytes
                        for peer in peers
                        if found[pattern, peer.name].scaled
                    },
                    **_network(found, peers, pattern, operation),
                    "absent": {
                        peer.name: found[pattern, peer.name].reason
                        for peer in peers
                        if found[pattern, peer.name].reason
                    },
                }
            )
    return results


def _network(found: Measurements, peers: Sequence[Peer], pattern: str, operation: str) -> dict[str, Any]:
    """Return the network figures of a result: none if the launches were on one host."""
    there = {
        peer.name: found[pattern, peer.name]
        for peer in peers
        if not peer.raw and found[pattern, peer.name].sent_bytes.get(operation)
    }
    if not there:
        return {}
    sent = {name: statistics.median(one.sent_bytes[operation]) for name, one in there.items()}
    return {
        "sent_bytes": sent,
        "cross_bytes": {name: one.cross_bytes for name, one in there.items()},
        "ratio_sent_cross": {
            name: sent[name] / one.cross_bytes["least"] for name, one in there.items() if one.cross_bytes["least"]
        },
    }


def _print_network(console: Console, results: Sequence[dict[str, Any]], peers: Sequence[Peer]) -> None:
    shown = [peer for peer in peers if not peer.raw]
    table = Table(
        title="bytes sent over the network, MB (medians; in brackets of what must cross)", box=None, header_style="bold"
    )
    for name in ("pattern", "op", "must cross", "even domains"):
        table.add_column(name, justify="right" if name in ("must cross", "even domains") else "left")
    for peer in shown:
        table.add_column(peer.title, justify="right")
    for result in results:
        sent, cross = result.get("sent_bytes", {}), result.get("cross_bytes", {})
        full = next((cross[name] for name in cross if name not in result["scaled_bytes"]), None)
        cells = [f"{full[kind] / 1e6:,.1f}" if full else "–" for kind in ("least", "even")]
        for peer in shown:
            ratio = result["ratio_sent_cross"].get(peer.name) if sent else None
            mark = "*" if peer.name in result["scaled_bytes"] else ""
            text = f"{sent[peer.name] / 1e6:,.1f}{mark}" if peer.name in sent else "–"
            cells.append(text + (f" ({ratio:.2f})" if ratio is not None else ""))
        table.add_row(PATTERNS[result["pattern"]].title, result["op"], *cells)
    console.print(table)


def _title(options: Options) -> str:
    """Return the words over the table."""
    words = [
        f"{options.access.replace('_', ' ')} bandwidth, MB/s (medians; * on a smaller file)",
        f"{options.ranks} ranks",
        f"{amount_text(options.file_bytes)}",
    ]
    words += [f"mpiio_ext on {options.nodes} pretended nodes"] if options.nodes else []
    words += (
        [f"{options.hosts} hosts x {options.ranks_per_host}" + (f" at {options.rate}" if options.rate else "")]
        if options.hosts
        else []
    )
    words += ["through HDF5"] if options.interface == "hdf5" else []
    words += ["writes end with MPI_File_sync"] if options.sync else []
    words += [f"mpiio_ext with {name}={value}" for name, value in options.hints.items()]
    words += (
        [f"with {options.delegates} delegates ({options.delegate_mode}) until the file is closed"]
        if options.delegates
        else []
    )
    return ", ".join(words)


def _print(console: Console, results: Sequence[dict[str, Any]], peers: Sequence[Peer], title: str) -> None:
    table = Table(title=title, box=None, header_style="bold")
    table.add_column("pattern")
    table.add_column("op")
    for peer in peers:
        table.add_column(peer.title, justify="right")
    ours = [peer for peer in peers if peer.ours]
    for peer in ours:
        table.add_column(
            "÷ best native" if len(ours) == 1 else f"{peer.installation.family} ÷ best native", justify="right"
        )
    table.add_column("÷ raw", justify="right")
    for result in results:
        cells = []
        for peer in peers:
            value = result["mbytes_per_s"].get(peer.name)
            mark = "*" if peer.name in result["scaled_bytes"] else ""
            cells.append(f"{value:,.0f}{mark}" if value is not None else "–")
        found = [result["ratio_native_by_peer"].get(peer.name) for peer in ours]
        ratios = [f"{ratio:.2f}" if ratio is not None else "–" for ratio in (*found, result["ratio_raw"])]
        table.add_row(PATTERNS[result["pattern"]].title, result["op"], *cells, *ratios)
    console.print(table)
    reasons = {(name, reason): None for result in results for name, reason in result["absent"].items()}
    for name, reason in reasons:
        console.print(f"{name}: {reason}", highlight=False)


def _drawn(result: dict[str, Any], peers: Sequence[Peer]) -> list[tuple[str, bool, float]]:
    """Return (title, ours, MB/s) of the bars of a result: the best native way, this library by MPI, the limit."""
    speed = result["mbytes_per_s"]
    native = [speed[peer.name] for peer in peers if peer.native and peer.name in speed]
    best = [("best of the MPI libraries' own", False, max(native))] if native else []
    others = [peer for peer in peers if not peer.native and peer.name in speed]
    return best + [(peer.title, peer.ours, speed[peer.name]) for peer in others]


def _plot(results: Sequence[dict[str, Any]], peers: Sequence[Peer], path: Path) -> None:
    """Draw a panel for each operation: bars beside each other, one group a pattern."""
    from mpiio_ext.common.plots import Axis, Bar, Chart, Look, Panel, look, save

    titles = list(dict.fromkeys(title for result in results for title, _, _ in _drawn(result, peers)))
    width = 0.85 / len(titles)

    def draw(operation: str, panel: Panel) -> None:
        rows = [result for result in results if result["op"] == operation]
        for k, title in enumerate(titles):
            drawn = [
                (Bar(x - 0.42 + (k + 0.5) * width, value), ours)
                for x, row in enumerate(rows)
                for name, ours, value in _drawn(row, peers)
                if name == title
            ]
            own = Look(look(k).colour, hatch="//" if any(ours for _, ours in drawn) else "")
            panel.bars([bar for bar, _ in drawn], own, title, width=width, edge="ink", thin=0.3)
        names = [textwrap.fill(PATTERNS[row["pattern"]].title, 12) for row in rows]
        panel.frame(Axis(ticks=list(enumerate(names))), Axis(label=f"{operation}, MB/s", scale="log", grid=True))

    panels = [[partial(draw, operation)] for operation in OPERATIONS]
    save(Chart(name="compare", panels=panels, width=10, height=8, legend="above"), path)


def _environment(installations: Sequence[Installation], options: Options) -> dict[str, Any]:
    return describe_environment(
        installations,
        options.file.parent,
        ranks=options.ranks,
        file_bytes=options.file_bytes,
        rounds=options.rounds,
        repeats_per_round=options.repeats,
        access=options.access,
        interface=options.interface,
        sync=options.sync,
        pretended_nodes=options.nodes or None,
        delegates=options.delegates or None,
        delegate_mode=options.delegate_mode if options.delegates else None,
        hosts=options.hosts or None,
        ranks_per_host=options.ranks_per_host or None,
        rate=options.rate or None,
        hints=options.hints or None,
    )


def _peers(installations: Sequence[Installation], options: Options) -> list[Peer]:
    """Return the peers of a comparison: the MPI libraries, alone and with this library, and the file system."""
    peers = [peer for installation in installations for peer in peers_of(installation, options.ranks)]
    peers = on_nodes(with_delegates(peers, options.delegates, options.delegate_mode), options.ranks, options.nodes)
    peers = [replace(peer, hints=peer.hints | options.hints) if peer.ours else peer for peer in peers]
    peers.append(Peer(name="raw", title="raw pwrite/pread", installation=installations[0], raw=True))
    return [replace(peer, hdf5=options.interface == "hdf5") for peer in peers]


def run_compare(
    options: Options, *, put: Put | None, plot_path: Path | None, place: Place | None = None
) -> list[dict[str, Any]]:
    """Measure, print, and write the files; returns the results list.

    `place`: the place of the launches; None: this machine.

    Interrupted, also by SIGTERM, it prints and writes what is there, and raises KeyboardInterrupt.
    """
    console = console_of_results()
    installations = some_installations()
    peers = _peers(installations, options)
    console.print("peers of: " + ", ".join(i.version for i in installations), highlight=False)
    found: Measurements = {}

    def store(results: Sequence[dict[str, Any]], **end: Any) -> None:
        if put is not None:
            head = {
                "environment": _environment(installations, options),
                "peers": {peer.name: peer.title for peer in peers},
            }
            put(json.dumps({**head, "results": results}, indent=1), **end)

    def keep(pattern: str) -> None:
        for one in summarize(found, peers, [pattern]):
            speeds = ", ".join(f"{peer} {speed:,.0f}" for peer, speed in one["mbytes_per_s"].items())
            echo(f"{PATTERNS[pattern].title}, {one['op']}, MB/s: {speeds or '–'}", err=True)
        store(summarize(found, peers, _begun(found, peers, options)), done=False)

    launches = len(peers) * len(options.patterns) * options.rounds
    with interruptible() as interrupted, progress(launches, name="mpiio-ext bench compare") as advance:
        measure(peers, options, advance, place.run if place else run_benchmark, found, keep)
    results = summarize(found, peers, _begun(found, peers, options) if interrupted else options.patterns)
    _print(console, results, peers, f"{_title(options)}{': interrupted' if interrupted else ''}")
    if any("sent_bytes" in result for result in results):
        _print_network(console, results, peers)
    store(results)
    if interrupted:
        raise interrupted[0]
    if plot_path is not None:
        _plot(results, peers, plot_path)
    return results


def _delegates(_: click.Context, __: click.Parameter, value: str) -> str:
    from mpiio_ext.errors import ArgumentError
    from mpiio_ext.hints import check

    if value:
        try:
            check("mpiox_delegates", value)
        except ArgumentError as error:
            raise click.BadParameter(str(error)) from error
    return value


@click.command(cls=Command, name="compare", help=__doc__)
@click.option("--quick", is_flag=True, help="64 MiB, one round: two or three minutes on 2 cores.")
@click.option("--ranks", type=click.IntRange(1), help="Ranks of every launch.  [default: 4, on hosts those of all]")
@click.option("--size", "file_bytes", type=Size(1 << 16), help="Size of the file.  [default: 256MiB]")
@click.option("--rounds", type=click.IntRange(1), help="Launches per pattern and peer.  [default: 3]")
@click.option("--repeats", default=3, show_default=True, type=click.IntRange(1), help="Repetitions inside a launch.")
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    type=click.Choice(list(PATTERNS)),
    metavar="NAME",
    help=f"Only these; repeatable: {', '.join(PATTERNS)}.",
)
@click.option(
    "--path",
    type=click.Path(path_type=Path),
    help="Folder on the file system to measure.  [default: /dev/shm; on hosts one in memory that they share]",
)
@click.option("--access", type=click.Choice(ACCESSES), default=ACCESSES[0], show_default=True, help="Calls to use.")
@click.option(
    "--interface",
    type=click.Choice(["mpiio", "hdf5"]),
    default="mpiio",
    show_default=True,
    help=f"hdf5: patterns {' and '.join(HDF5_PATTERNS)}, access collective or independent.",
)
@click.option("--sync", is_flag=True, help="Writes end with MPI_File_sync (raw: fsync), inside their time.")
@click.option(
    "--nodes",
    default=0,
    show_default="the real ones",
    type=click.IntRange(0),
    help="Let mpiio_ext pretend that the ranks lie on so many nodes.",
)
@click.option(
    "--hosts",
    "host_count",
    default=0,
    show_default="this machine",
    type=click.IntRange(0),
    help="Spread the ranks over so many hosts, which are namespaces of this machine with a network of their "
    "own, and count what they send.",
)
@click.option("--ranks-per-host", default=2, show_default=True, type=click.IntRange(1), help="With --hosts.")
@click.option(
    "--rate", default="", show_default="no limit", help="With --hosts: bandwidth of each host's link, as 1gbit."
)
@click.option(
    "--delegates",
    default="",
    show_default="none",
    metavar="N",
    callback=_delegates,
    help="Run mpiio_ext with so many I/O delegates, too: N, N% of the ranks, or per_node=N. Their times "
    "count closing the file.",
)
@click.option(
    "--delegate-mode",
    type=click.Choice(["spawn", "process", "thread", "auto"]),
    default="spawn",
    show_default=True,
    help="How delegates are started.",
)
@click.option(
    "-H",
    "--hint",
    "hints",
    type=HintType(),
    multiple=True,
    metavar="NAME=VALUE",
    help="A hint for mpiio_ext; repeatable.",
)
@click.option(
    "--native-limit",
    "limit_s",
    default="20s",
    show_default=True,
    type=Duration(least=1),
    help="Time that a native peer may take per launch; otherwise its file is made smaller and marked.",
)
@json_option("Print the results as JSON; the table goes to standard error.")
@json_file_option()
@click.option("--plot", "plot_path", type=click.Path(path_type=Path, dir_okay=False), help="Draw them (.svg or .png).")
def command(
    *,
    quick: bool,
    path: Path | None,
    host_count: int,
    as_json: bool,
    output: Path | None,
    plot_path: Path | None,
    **given: Any,
) -> None:
    """Parse the options and run; ends the process with one line on an error. `given` are fields of `Options`."""
    ranks, rate = given["ranks"], given["rate"]
    room = host_count * given["ranks_per_host"]
    with json_result(as_json, output) as put, reporting(), contextlib.ExitStack() as stack:
        place = None
        if given["interface"] == "hdf5":
            given["patterns"] = given["patterns"] or HDF5_PATTERNS
            _check_hdf5(given["patterns"], given["access"], given["sync"])
        if host_count:
            _check_hosts(ranks, room, given["nodes"], given["delegates"])
            place = stack.enter_context(hosts(host_count, given["ranks_per_host"], rate))
        elif rate:
            raise ArgumentError("--rate is of hosts' links: it needs --hosts")
        file = stack.enter_context(scratch_file(path or (place.folder if place else Path("/dev/shm")), "compare"))
        given |= {
            "ranks": ranks or room or 4,
            "file_bytes": given["file_bytes"] or (1 << 26 if quick else 1 << 28),
            "rounds": given["rounds"] or (1 if quick else 3),
            "patterns": given["patterns"] or tuple(PATTERNS),
            "ranks_per_host": given["ranks_per_host"] if host_count else 0,
            "hints": dict(given["hints"]),
        }
        options = Options(file=file, hosts=host_count, **given)
        run_compare(options, put=put if as_json else None, plot_path=plot_path, place=place)


def _check_hdf5(patterns: Sequence[str], access: str, sync: bool) -> None:
    for pattern in patterns:
        if pattern not in HDF5_PATTERNS:
            raise ArgumentError(f"--interface hdf5 has no pattern {pattern}, only {' and '.join(HDF5_PATTERNS)}")
    if access not in ("collective", "independent") or sync:
        raise ArgumentError("--interface hdf5 goes with --access collective or independent, and not with --sync")


def _check_hosts(ranks: int | None, room: int, nodes: int, delegates: str) -> None:
    if nodes or delegates:
        raise ArgumentError("--hosts goes neither with --nodes nor with --delegates")
    if ranks is not None and ranks > room:
        raise ArgumentError(f"--ranks {ranks}: the hosts have room for {room}, see --ranks-per-host")
