"""I/O delegates between hosts: independent accesses through two delegates on four hosts, beside the MPI library's own.

Usage: ``python benchmarks/delegates_hosts.py [--hosts 4] [--ranks-per-host 1] [--delegates 2] [--json FILE]``

The hosts are namespaces of this machine, with a network of their own (tests/support/hosts.py; needs root), which share
a file system in memory. Ways take turns within each round; every byte is verified. MB/s to write until the file is
closed, and to read: medians; gain: the median of the ratios within a round, over native independent.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from mpiio_ext.bench.compare.peers import find_installations
from support import hosts
from support.launch import base_environment, run_bounded

PATTERNS = {"64 B": ("inter", "64"), "4 KiB": ("inter", "4096"), "64 KiB": ("inter", "65536")}
NATIVE, COLLECTIVE, OURS, DELEGATES = "native independent", "native collective", "mpiio_ext collective", "delegates"


def parse() -> argparse.Namespace:
    """Return the options."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ranks-per-host", type=int, default=1)
    parser.add_argument("--delegates", type=int, default=2)
    parser.add_argument("--bytes", type=int, default=16 << 20, help="size of the file (default: 16 MiB)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that a launch may take")
    parser.add_argument("--calls", choices=["whole", "small"], default="whole", help="a call a rank, or a call a piece")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def launch(cluster: hosts.Cluster, options: argparse.Namespace, way: str, pattern: str) -> tuple[float, float] | None:
    """Run one way; MB/s of the write and of the read, or None when it took too long."""
    kind, block = PATTERNS[pattern]
    access = "collective" if "collective" in way else "independent"
    calls = options.calls if access == "independent" else "whole"
    program = [find_installations()[0].program, "--file", cluster.folder / "file", "--bytes", str(options.bytes)]
    program += ["--pattern", kind, "--block", block, "--access", access, "--calls", calls, "--repeats", "1"]
    hints = f"*:mpiox_delegates={options.delegates}" if way == DELEGATES else ""
    start = cluster.launcher(options.hosts * options.ranks_per_host, options.ranks_per_host)
    words = list(map(os.fspath, program)) if way.startswith("native") else cluster.program(program)
    done = run_bounded([*start, *words], env=base_environment() | {"MPIOX_HINTS": hints}, timeout_s=options.limit,
                       cwd=cluster.folder, check=False)
    if done.timed_out:
        return None
    line = next((line for line in done.stdout.splitlines() if line.startswith("{")), None)
    if done.returncode != 0 or line is None:
        sys.exit(done.describe())
    seen = json.loads(line)
    if seen["wrong_bytes"]:
        sys.exit(f"{way}, {pattern}: {seen['wrong_bytes']} wrong bytes")
    return seen["bytes"] / 1e6 / (seen["write_s"] + seen["write_close_s"]), seen["bytes"] / 1e6 / seen["read_s"]


def measure(cluster: hosts.Cluster, options: argparse.Namespace, pattern: str) -> dict[str, Any]:
    """Return the row of a pattern."""
    ways = [NATIVE, COLLECTIVE, OURS, DELEGATES]
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for number in range(options.rounds):
        for way in ways[number % len(ways):] + ways[: number % len(ways)]:
            rates = launch(cluster, options, way, pattern)
            if rates is not None:
                found[way].append(rates)
            print(f"{pattern}, round {number + 1}: {way}: {rates or 'not done in time'}", file=sys.stderr, flush=True)
    row: dict[str, Any] = {"pattern": pattern, "mbytes_per_s": {}, "gain": None}
    for way in ways:
        if found[way]:
            row["mbytes_per_s"][way] = [statistics.median(rates[k] for rates in found[way]) for k in (0, 1)]
    if found[NATIVE] and len(found[NATIVE]) == len(found[DELEGATES]):
        pairs = list(zip(found[DELEGATES], found[NATIVE], strict=True))
        row["gain"] = [statistics.median(ours[k] / native[k] for ours, native in pairs) for k in (0, 1)]
    return row


def main() -> None:
    """Measure and print."""
    options = parse()
    reason = hosts.why_not()
    if reason is not None:
        sys.exit(f"no hosts can be brought up here: {reason}")
    with hosts.cluster(options.hosts) as cluster:
        rows = [measure(cluster, options, pattern) for pattern in PATTERNS]
    print(f"{find_installations()[0].version}, {options.hosts} hosts, {options.ranks_per_host} ranks a host, "
          f"{options.delegates} delegates, {options.bytes / 1e6:.0f} MB, {options.calls} calls; write / read, MB/s")
    for row in rows:
        cells = [f"{way} {rates[0]:,.0f} / {rates[1]:,.0f}" for way, rates in row["mbytes_per_s"].items()]
        gain = f"gain {row['gain'][0]:.1f} / {row['gain'][1]:.1f}" if row["gain"] else "gain –"
        print(f"{row['pattern']:>7}: " + "; ".join([*cells, gain]))
    if options.json is not None:
        document = {"units": {"mbytes_per_s": "10^6 bytes per second, [write until closed, read]",
                              "gain": "delegates over native independent"}, "rows": rows}
        options.json.write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
