"""I/O delegates: bandwidth, requests, memory and closing, against the MPI library and this library without them.

Usage: ``python benchmarks/delegates.py [--path /dev/shm] [--ranks 4] [--delegates 2] [--json d.json] [--plot d.svg]``

Launches the micro-benchmark ``mpiio_bandwidth`` on the MPI of the Python that runs this, ways taking turns within each
round, the order rotated from round to round:

native independent    the MPI library's own MPI_File_write_at on the pattern's view (the best of OMPIO and ROMIO)
native collective     its MPI_File_write_at_all, with default hints and tuned (the best of them)
independent           this library without delegates
collective            this library's MPI_File_write_at_all
delegates             this library, independent, through delegates

Times of writes run from the first access to the end of the close: bytes that lie in a delegate's memory are not in the
file yet, and closing brings them there. Ratios are formed within a round; the table has their medians and ranges. A
native way that would take longer than ``--limit`` gets a smaller file (marked *). Every byte is verified.

Latency: one rank, one delegate, beside the 8-byte round trip to a child of MPI_Comm_spawn and beside memcpy
(``delegate_latency.c``), under every MPI at hand.

``--latency-us 100`` adds a latency to each request to the file system, for all ways alike, as a parallel file system
has it (``slow_storage.c``).

What delegates send to the file system and the memory that they take come from looking at them while they run
(``mpiio_ext.delegates``, and ``/proc``); these runs are not timed. The targets that are checked are printed with what
was found.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from delegates_results import GROUPS, MIB, OPERATIONS, PATTERNS, UNITS, plot, print_latency, print_rows, verdicts
from delegates_seen import Observer, Seen

from mpiio_ext.bench.compare.launches import Case, Outcome, describe_environment, run_benchmark, scratch_file
from mpiio_ext.bench.compare.peers import Installation, Peer, find_installations, peers_of

#: Patterns whose requests are counted.
_PIECES = ("inter8", "inter64", "inter512", "inter4096", "inter65536")
_SHRINK = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to run the micro-benchmark: a peer with a kind of access."""

    group: str
    peer: Peer
    access: str

    @property
    def name(self) -> str:
        """Of its figures."""
        return f"{self.group}:{self.peer.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is run everywhere: see ``--help``."""

    installation: Installation
    ranks: int
    delegates: int
    file: Path
    file_bytes: int
    rounds: int
    repeats: int
    limit_s: float
    hints: str
    groups: tuple[str, ...] = tuple(GROUPS)
    slow_storage: Path | None = None  # the compiled slow_storage.c
    latency_us: int = 0

    def peers(self) -> list[Peer]:
        """Return everything that is compared, on the same storage."""
        found = peers_of(self.installation, self.ranks)
        if self.slow_storage is None:
            return found
        slow = {"SLOW_STORAGE_PATH": str(self.file), "SLOW_STORAGE_US": str(self.latency_us)}
        return [dataclasses.replace(peer, under=(str(self.slow_storage),), environment=peer.environment | slow)
                for peer in found]

    def delegated(self, *hints: str) -> Peer:
        """Return this library with delegates, and with more hints."""
        words = [f"mpiox_delegates={self.delegates}", *([self.hints] if self.hints else []), *hints]
        peer = next(peer for peer in self.peers() if peer.ours)
        return dataclasses.replace(peer, name="delegates", title="mpiio_ext with delegates",
                                   environment=peer.environment | {"MPIOX_HINTS": "*:" + ":".join(words)})

    def case(self, pattern: str, **changes: Any) -> Case:
        """Return a launch of a pattern."""
        title, words = PATTERNS[pattern]
        settings: dict[str, Any] = {"file_bytes": self.file_bytes, "repeats": self.repeats, "rewrite": True,
                                    "access": "independent", "limit_s": 4 * self.limit_s, **changes}
        return Case(title=title, pattern=words, ranks=self.ranks, file=self.file, **settings)


def ways_of(setup: Setup, calls: str) -> list[Way]:
    """Return what takes turns. Nothing collective has a call for every piece, and nothing is tuned for it."""
    found = []
    for peer in setup.peers():
        if peer.ours:
            found.append(Way(group="ours_independent", peer=peer, access="independent"))
            found += [Way(group="ours_collective", peer=peer, access="collective")]
            continue
        if not peer.name.endswith("_tuned"):
            found.append(Way(group="native_independent", peer=peer, access="independent"))
        found.append(Way(group="native_collective", peer=peer, access="collective"))
    if setup.delegates:
        found.append(Way(group="delegates", peer=setup.delegated(), access="independent"))
    return [way for way in found if way.group in setup.groups and (calls == "whole" or way.access == "independent")]


# ---- bandwidth -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Figures:
    """Of one way and pattern: bandwidth by operation, one list per round, 10^6 bytes a second.

    `to_close` counts the time until the file is closed, `calls_only` that of the accesses alone.
    """

    file_bytes: int
    reason: str = ""
    to_close: dict[str, list[list[float]]] = field(default_factory=lambda: {name: [] for name in OPERATIONS})
    calls_only: dict[str, list[list[float]]] = field(default_factory=lambda: {name: [] for name in OPERATIONS})


#: (pattern, name of way) -> what was measured.
Found = dict[tuple[str, str], Figures]


def fitting_bytes(way: Way, setup: Setup, pattern: str, calls: str) -> tuple[int, str]:
    """Return the size that a native way can do within the limit, found with a small file; or why it cannot."""
    small = max(MIB, setup.file_bytes // 64)
    begun = time.perf_counter()
    tried = run_benchmark(way.peer, setup.case(pattern, file_bytes=small, repeats=1, calls=calls, access=way.access,
                                               limit_s=setup.limit_s))
    if tried.reason:
        return small, tried.reason
    seconds = sum(record[f"{name}_s"] for record in tried.records for name in OPERATIONS)
    overhead_s = time.perf_counter() - begun - seconds
    size = setup.file_bytes
    while size > small and overhead_s + setup.repeats * seconds * size / small > setup.limit_s:
        size //= _SHRINK
    return max(size, small), ""


def record(into: Figures, outcome: Outcome) -> None:
    """Add a round."""
    into.reason = into.reason or outcome.reason
    for name in OPERATIONS:
        until_close = [one["bytes"] / (one[f"{name}_s"] + one[f"{name}_close_s"]) / 1e6 for one in outcome.records]
        alone = [one["bytes"] / one[f"{name}_s"] / 1e6 for one in outcome.records]
        into.to_close[name].append(until_close)
        into.calls_only[name].append(alone)


def measure(setup: Setup, patterns: Sequence[str], calls: str, say: Callable[[str], None]) -> Found:
    """Return the figures by (pattern, name of way); ways take turns."""
    ways = ways_of(setup, calls)
    found: Found = {}
    for pattern in patterns:
        for way in ways:
            size, reason = setup.file_bytes, ""
            if way.peer.native:
                size, reason = fitting_bytes(way, setup, pattern, calls)
            found[pattern, way.name] = Figures(file_bytes=size, reason=reason)
        for number in range(setup.rounds):
            shift = number % len(ways)
            for way in ways[shift:] + ways[:shift]:
                figures = found[pattern, way.name]
                if figures.reason:
                    continue
                say(f"{PATTERNS[pattern][0]}, {calls} calls, round {number + 1}: {way.name}")
                record(figures, run_benchmark(way.peer, setup.case(pattern, file_bytes=figures.file_bytes, calls=calls,
                                                                   access=way.access)))
    return found


def _median(rounds: list[list[float]]) -> float | None:
    values = [value for one in rounds for value in one]
    return statistics.median(values) if values else None


def _best(found: Found, pattern: str, group: str, operation: str) -> str | None:
    """Return the fastest way of a group."""
    speeds = {name: median for (where, name), figures in found.items()
              if where == pattern and name.split(":")[0] == group
              and (median := _median(figures.to_close[operation])) is not None}
    return max(speeds, key=lambda name: speeds[name], default=None)


def _ratios(one: Figures, other: Figures, operation: str) -> list[float]:
    """Return one over other within each round."""
    return [statistics.median(a) / statistics.median(b)
            for a, b in zip(one.to_close[operation], other.to_close[operation], strict=False) if a and b]


def summarize(found: Found, patterns: Sequence[str], calls: str) -> list[dict[str, Any]]:
    """Return a row per pattern and operation: the best way of each group, and ratios of the delegates to the others."""
    rows = []
    for pattern in patterns:
        for operation in OPERATIONS:
            best = {group: name for group in GROUPS if (name := _best(found, pattern, group, operation))}
            every = {name: median for (where, name), figures in found.items() if where == pattern
                     and (median := _median(figures.to_close[operation])) is not None}
            row: dict[str, Any] = {"pattern": pattern, "calls": calls, "op": operation, "ways": best,
                                   "mbytes_per_s_by_way": every, "mbytes_per_s": {}, "spread_mbytes_per_s": {},
                                   "calls_only_mbytes_per_s": {},
                                   "scaled_bytes": {}, "delegates_over": {}, "spread_delegates_over": {}}
            for group, name in best.items():
                figures = found[pattern, name]
                values = [value for one in figures.to_close[operation] for value in one]
                row["mbytes_per_s"][group] = statistics.median(values)
                row["spread_mbytes_per_s"][group] = [min(values), max(values)]
                row["calls_only_mbytes_per_s"][group] = _median(figures.calls_only[operation])
                if figures.file_bytes < max(other.file_bytes for other in found.values()):
                    row["scaled_bytes"][group] = figures.file_bytes
                if "delegates" in best and group != "delegates":
                    ratios = _ratios(found[pattern, best["delegates"]], figures, operation)
                    if not ratios:
                        continue
                    row["delegates_over"][group] = statistics.median(ratios)
                    row["spread_delegates_over"][group] = [min(ratios), max(ratios)]
            row["absent"] = {name: figures.reason for (where, name), figures in found.items()
                             if where == pattern and figures.reason}
            rows.append(row)
    return rows


# ---- looking at delegates --------------------------------------------------------------------------------------------


def _counts(seen: Sequence[Seen]) -> Iterator[tuple[int, int]]:
    """Yield (power, write requests of 2^power bytes to twice that) of all delegates."""
    for power in range(48):
        yield power, sum(one.status.flush_size_log2[power] for one in seen)


def requests_row(setup: Setup, pattern: str, calls: str) -> dict[str, Any]:
    """Return how large the file-system write requests of the delegates were in one write of a pattern."""
    with Observer() as observer:
        outcome = run_benchmark(setup.delegated(), setup.case(pattern, repeats=1, rewrite=False, calls=calls))
    seen = list(observer.seen.values())
    row: dict[str, Any] = {"pattern": pattern, "calls": calls, "reason": outcome.reason, "delegates": len(seen)}
    if not seen or outcome.reason:
        return row | {"reason": outcome.reason or "no delegate was seen"}
    stripe = seen[0].status.page_bytes
    flushed = sum(one.status.counters["flush_bytes"] for one in seen)
    below = sum(count * ((2 << power) - 1) for power, count in _counts(seen) if 2 << power <= stripe)
    below += sum(count * (stripe - 1) for power, count in _counts(seen) if 1 << power < stripe < 2 << power)
    return row | {
        "stripe_bytes": stripe,
        "flush_bytes": flushed,
        "flush_requests": sum(one.status.counters["flush_requests"] for one in seen),
        "whole_stripe_fraction_at_least": max(0.0, 1 - below / flushed) if flushed else None,
        "data_bytes": outcome.records[0]["bytes"],
        "counters": {name: sum(one.status.counters[name] for one in seen) for name in seen[0].status.counters},
    }


def memory_row(setup: Setup, cap_bytes: int, factor: int) -> dict[str, Any]:
    """Return what the delegates took while a file of `factor` times their caps was written and read."""
    peer = setup.delegated(f"mpiox_delegate_cache={cap_bytes}")
    case = setup.case("inter4096", file_bytes=factor * cap_bytes * setup.delegates, repeats=1, rewrite=False)
    with Observer() as observer:
        outcome = run_benchmark(peer, case)
    seen = list(observer.seen.values())
    row: dict[str, Any] = {"cap_bytes": cap_bytes, "file_bytes": case.file_bytes, "reason": outcome.reason}
    if not seen or outcome.reason:
        return row | {"reason": outcome.reason or "no delegate was seen"}
    written_s, close_s = outcome.records[0]["write_s"], outcome.records[0]["write_close_s"]
    return row | {
        "segment_peak_bytes": max(one.segment_bytes for one in seen),
        "process_at_start_bytes": max(one.private_at_start_bytes for one in seen),
        "process_peak_bytes": max(one.private_bytes for one in seen),
        "resident_peak_bytes": max(one.resident_bytes for one in seen),
        "segment_over_cap": max(one.segment_bytes for one in seen) / cap_bytes,
        "close_fraction": close_s / (written_s + close_s),
        "waits_requests": sum(one.status.counters["waits"] for one in seen),
    }


def close_row(setup: Setup, pattern: str, cap_bytes: int, factor: int) -> dict[str, Any]:
    """Return the part of a write of a file of `factor` times all caps that is spent closing it; unobserved."""
    peer = setup.delegated(f"mpiox_delegate_cache={cap_bytes}")
    case = setup.case(pattern, file_bytes=factor * cap_bytes * setup.delegates, rewrite=False,
                      repeats=max(3, setup.repeats))
    outcome = run_benchmark(peer, case)
    parts = [one["write_close_s"] / (one["write_s"] + one["write_close_s"]) for one in outcome.records]
    return {"pattern": pattern, "cap_bytes": cap_bytes, "file_bytes": case.file_bytes, "reason": outcome.reason,
            "close_fraction": statistics.median(parts) if parts else None,
            "spread_close_fraction": [min(parts), max(parts)] if parts else None}


# ---- latency ---------------------------------------------------------------------------------------------------------


def latency_program(installation: Installation) -> Path | None:
    """Compile benchmarks/delegate_latency.c for an installation; None where it has no compiler wrapper."""
    wrapper = installation.mpiexec.parent / "mpicc"
    if not wrapper.exists():
        return None
    target = Path(_scratch().name) / f"delegate_latency_{installation.family}"
    if not target.exists():
        source = Path(__file__).with_name("delegate_latency.c")
        subprocess.run([str(wrapper), "-std=c11", "-D_GNU_SOURCE", "-O2", str(source), "-ldl", "-o", str(target)],
                       check=True, timeout=120)
    return target


@functools.cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="mpiox_latency_")  # deleted when the process ends


def latency_rows(setup: Setup, installation: Installation) -> list[dict[str, Any]]:
    """Return a row per figure: the library's own, through one delegate, and of a spawned child, taking turns."""
    program = latency_program(installation)
    if program is None:
        return [{"mpi": installation.version, "reason": "no mpicc beside its launcher"}]
    ours = next(peer for peer in peers_of(installation, 1) if peer.ours)
    hints = ":".join(["*:mpiox_delegates=1", *([setup.hints] if setup.hints else [])])
    delegated = dataclasses.replace(ours, environment=ours.environment | {"MPIOX_HINTS": hints})
    ways = [(["--file", str(setup.file)], delegated), (["--spawn"], dataclasses.replace(ours, ours=False))]
    found: dict[str, list[dict[str, Any]]] = {}
    for _ in range(setup.rounds):
        for words, peer in ways:
            peer = dataclasses.replace(peer, installation=dataclasses.replace(installation, program=program))
            done = subprocess.run(peer.command(1, words), env=peer.variables(), capture_output=True, text=True,
                                  timeout=120, check=False)
            setup.file.unlink(missing_ok=True)
            if done.returncode != 0:
                return [{"mpi": installation.version, "reason": (done.stderr.strip().splitlines() or ["failed"])[0]}]
            for line in done.stdout.splitlines():
                if line.startswith("{"):
                    figure = json.loads(line)
                    found.setdefault(figure.pop("name"), []).append(figure)
    return [
        {"mpi": installation.version, "name": name, "bytes": figures[0]["bytes"], "reason": "",
         **{key: statistics.median(figure[key] for figure in figures)
            for key in ("min_us", "median_us", "p90_us", "p99_us")}}
        for name, figures in found.items()
    ]


# ---- results ---------------------------------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    """Return the options."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", type=Path, default=Path("/dev/shm"), help="folder on the file system to measure")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--delegates", type=int, default=2, help="0: measure the others only")
    parser.add_argument("--bytes", type=int, default=64 * MIB, help="size of the file (default: 64 MiB)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3, help="repetitions inside a launch")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds that a native launch may take")
    parser.add_argument("--latency-us", type=int, default=0,
                        help="each request to the file system takes so much longer (tests/programs/slow_storage.c)")
    parser.add_argument("--calls", default="whole,small", help="whole: a call a rank; small: a call a piece")
    parser.add_argument("--pattern", action="append", choices=list(PATTERNS), help="only these; repeatable")
    parser.add_argument("--groups", default=",".join(GROUPS), help=f"ways to run, of {', '.join(GROUPS)}")
    parser.add_argument("--hints", default="", help="more hints for the runs with delegates, name=value:name=value")
    parser.add_argument("--cap", type=int, default=8 * MIB, help="memory of a delegate, for memory and closing")
    parser.add_argument("--only", default="bandwidth,requests,close,memory,latency", help="parts of the measurement")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    return parser.parse_args()


def measure_all(setup: Setup, options: argparse.Namespace) -> dict[str, Any]:
    """Return the document of results, printing tables on the way."""
    def say(text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        elif text:
            print(text, file=sys.stderr, flush=True)

    parts, patterns = options.only.split(","), options.pattern or list(PATTERNS)
    document: dict[str, Any] = {
        "environment": describe_environment(
            [setup.installation], setup.file.parent, "delegates", ranks=setup.ranks, delegates=setup.delegates,
            file_bytes=setup.file_bytes, rounds=setup.rounds, repeats_per_round=setup.repeats, hints=setup.hints,
            load_average=os.getloadavg(), latency_us=setup.latency_us,
        ) | {"command_line": " ".join(["python", *sys.argv])},
        "units": UNITS, "groups": GROUPS, "bandwidth": [], "requests": [], "close": [], "memory": [], "latency": [],
    }
    for calls in options.calls.split(",") if "bandwidth" in parts else ():
        rows = summarize(measure(setup, patterns, calls, say), patterns, calls)
        say("")
        print_rows(rows, calls)
        document["bandwidth"] += rows
    if not setup.delegates:
        return document
    pieces = [pattern for pattern in patterns if pattern in _PIECES]
    if "requests" in parts:
        document["requests"] = [requests_row(setup, pattern, calls) for calls in options.calls.split(",")
                                for pattern in pieces]
    if "close" in parts:
        document["close"] = [close_row(setup, pattern, options.cap, 4) for pattern in pieces]
    if "memory" in parts:
        document["memory"] = [memory_row(setup, options.cap, 10)]
    if "latency" in parts:
        document["latency"] = [row for each in find_installations() for row in latency_rows(setup, each)]
        print_latency(document["latency"])
    return document


def compile_slow_storage(folder: Path) -> Path:
    """Return the library that delays requests."""
    library = folder / "slow_storage.so"
    source = Path(__file__).parents[1] / "tests" / "programs" / "slow_storage.c"
    command = ["cc", "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


def main() -> None:
    """Measure, print, and write the files."""
    options = parse()
    installations = find_installations()
    if not installations:
        sys.exit("no MPI installation with this library was found: run `make build` first")
    with scratch_file(options.path, "delegates") as file, tempfile.TemporaryDirectory() as folder:
        slow_storage = compile_slow_storage(Path(folder)) if options.latency_us else None
        setup = Setup(slow_storage=slow_storage, latency_us=options.latency_us,
                      installation=installations[0], ranks=options.ranks, delegates=options.delegates, file=file,
                      file_bytes=options.bytes, rounds=options.rounds, repeats=options.repeats, limit_s=options.limit,
                      hints=options.hints, groups=tuple(options.groups.split(",")))
        storage = f"{options.path} + {options.latency_us} µs a request" if options.latency_us else options.path
        title = (f"{setup.installation.version}, {setup.ranks} ranks, {setup.delegates} delegates, {storage}, "
                 f"{setup.file_bytes / 1e6:.0f} MB, {setup.rounds} rounds of {setup.repeats}")
        print(title)
        document = measure_all(setup, options)
    print("\ntargets")
    for target, met, text in verdicts(document):
        print(f"{'met   ' if met else 'missed'}  {target}: {text}")
    if options.json is not None:
        options.json.write_text(json.dumps(document, indent=1), encoding="utf-8")
    if options.plot is not None:
        plot(document["bandwidth"], title, options.plot)


if __name__ == "__main__":
    main()
