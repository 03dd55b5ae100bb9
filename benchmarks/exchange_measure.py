"""Parameters of the model from measurements on the cluster of namespaces, and measurements to check the model with.

Calibration uses a pair of hosts, four pairs at once, and one host alone (:func:`probe`); the check (:func:`measured`)
uses 2 to 8 hosts. The least of several times is taken everywhere: other programs on the machine only ever add.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from exchange_loggp import Machine, fit_line

from mpiio_ext.bench.compare.compare import PATTERNS
from mpiio_ext.bench.compare.hosts import Place, hosts
from mpiio_ext.bench.compare.launches import Case, run_benchmark
from mpiio_ext.bench.compare.peers import Installation, Peer, peers_of

__all__ = ["CONFIGURATIONS", "FILE_BYTES", "OPERATIONS", "measured", "probe"]

#: (hosts, ranks on each) of the check.
CONFIGURATIONS = ((2, 1), (4, 1), (8, 1), (4, 2))
OPERATIONS = ("rewrite", "read")
#: Of the file, by pattern: native needs seconds for a million pieces.
FILE_BYTES = {"inter8": 4 << 20, "inter64": 8 << 20, "inter4096": 32 << 20, "inter65536": 32 << 20,
              "blocks3d": 32 << 20, "contiguous": 32 << 20}
_SOURCE = Path(__file__).with_name("exchange_probe.c")
Say = Callable[[str], None]


def native_of(installation: Installation, ranks: int) -> Peer:
    """Return the MPI library's ROMIO with its default hints."""
    name = "mpich_romio" if installation.family == "mpich" else "ompi_romio"
    return next(peer for peer in peers_of(installation, ranks) if peer.name == name)


def ours_of(installation: Installation, ranks: int) -> Peer:
    """Return this library on that MPI; the hosts share a page cache, where it would leave the exchange out."""
    peer = next(peer for peer in peers_of(installation, ranks) if peer.ours)
    return replace(peer, hints={"mpiox_exchange": "two_phase"})


def case_of(pattern: str, ranks: int, file: Path, repeats: int) -> Case:
    """Return a launch of the micro-benchmark."""
    form = PATTERNS[pattern]
    return Case(title=form.title, pattern=tuple(form.arguments), ranks=ranks, file_bytes=FILE_BYTES[pattern], file=file,
                repeats=repeats, rewrite=True, limit_s=120.0)


def least(records: Sequence[dict[str, Any]], operation: str) -> float:
    """Return the least seconds of an operation."""
    return min(float(record[f"{operation}_s"]) for record in records)


def _run(place: Place, installation: Installation, program: Path, ranks: int) -> list[dict[str, Any]]:
    program = Path(shutil.copy(program, place.folder))  # which all hosts see
    peer = Peer(name="probe", title="probe", installation=replace(installation, program=program))
    words = place.command(peer, Case(title="", pattern=(), ranks=ranks, file_bytes=0, file=Path()))
    words = words[: words.index(str(program)) + 1]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False,
                          env={**peer.variables(), "OMPI_MCA_mpi_yield_when_idle": "1"})
    if done.returncode != 0:
        raise RuntimeError(f"exchange_probe.c: {done.stderr[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def _compiled(installation: Installation, folder: Path) -> Path:
    compiler = installation.mpiexec.parent / "mpicc"
    program = folder / f"probe_{installation.family}"
    subprocess.run([str(compiler) if compiler.exists() else "mpicc", "-O2", "-std=c11", "-D_GNU_SOURCE", str(_SOURCE),
                    "-o", str(program)], check=True)
    return program


def _pair(installation: Installation, program: Path) -> dict[str, float]:
    """Return half a round trip of a byte, the link's gaps, and the copy's cost, of a pair of hosts."""
    with hosts(2, 1, "") as place:
        lines = _run(place, installation, program, 2)
    copy = lines.pop()
    gap = fit_line([line["bytes"] for line in lines], [line["flood_s"] for line in lines])
    return {"trip_s": lines[0]["trip_s"][0], "gap_s": gap[0], "byte_gap_s": gap[1],
            "copy_byte_s": copy["copy_s"] / copy["copy_bytes"]}


def _saturated(installation: Installation, program: Path, cores: int) -> tuple[float, float]:
    """Return core seconds of a message and of a byte, both sides together: pairs that keep all cores busy."""
    with hosts(8, 1, "") as place:
        lines = _run(place, installation, program, 8)
    pairs = lines[0]["pairs"]
    return fit_line([line["bytes"] for line in lines], [line["flood_s"] * cores / pairs for line in lines])


def _pieces(installation: Installation, file: Path) -> dict[str, float]:
    """Return what pieces and storage cost, from one host: two ranks, and one without MPI-IO."""
    byte_s: dict[tuple[str, str], float] = {}
    for peer in (ours_of(installation, 2), native_of(installation, 2)):
        for pattern in ("inter8", "inter65536"):
            case = replace(case_of(pattern, 2, file, 5), file_bytes=FILE_BYTES["inter8"])
            outcome = run_benchmark(peer, case)
            if outcome.reason:
                raise RuntimeError(f"{peer.title}: {outcome.reason}")
            byte_s[peer.name, pattern] = least(outcome.records, "rewrite") / case.file_bytes

    def growth(peer: Peer) -> float:
        return 8 * max(1e-11, byte_s[peer.name, "inter8"] - byte_s[peer.name, "inter65536"])

    raw = Peer(name="raw", title="raw", installation=installation, raw=True)
    records = run_benchmark(raw, case_of("contiguous", 1, file, 5)).records
    # Two ranks copy at a time here. Native handles a piece twice at its rank (list, packing), once at the aggregator.
    return {"piece_s": 2 * growth(ours_of(installation, 2)), "native_piece_s": growth(native_of(installation, 2)) / 2,
            "store_byte_s": least(records, "rewrite") / FILE_BYTES["contiguous"],
            "load_byte_s": least(records, "read") / FILE_BYTES["contiguous"]}


def probe(installation: Installation, say: Say) -> Machine:
    """Measure a family's parameters on the cluster of namespaces, whose hosts share this machine's cores.

    Overheads are those of four pairs at once, which keep all cores busy: an MPI library that waits by polling hides
    what a message costs a core when there is only one. Both sides are taken to be equal.

    Parameters
    ----------
    installation : of the MPI
    say : called with words on what is being measured
    """
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        program = _compiled(installation, Path(folder))
        say(f"{installation.version}: messages of a pair of hosts")
        pair = _pair(installation, program)
        say(f"{installation.version}: messages of four pairs of hosts at once")
        overhead, byte = (both / 2 for both in _saturated(installation, program, cores))
        say(f"{installation.version}: pieces and storage on one host")
        pieces = _pieces(installation, Path(folder) / "data")
    latency = max(1e-6, pair.pop("trip_s") - 2 * overhead)
    return Machine(latency_s=latency, send_overhead_s=overhead, receive_overhead_s=overhead, send_byte_s=byte,
                   receive_byte_s=byte, **pair, **pieces, cores=cores, shared_cores=cores, storage_on_cores=True)


def measured(installations: Sequence[Installation], patterns: Sequence[str], rounds: int, say: Say
             ) -> list[dict[str, Any]]:
    """Measure this library and ROMIO on 2 to 8 hosts, taking turns.

    Returns
    -------
    one dictionary for each family, hosts, ranks per host, pattern, way ("ours", "native") and operation: the least
    seconds of all rounds; without `seconds`, but with a `reason`, where it failed
    """
    rows = []
    for count, each in CONFIGURATIONS:
        with hosts(count, each, "") as place:
            ways = [(way, of(installation, count * each)) for installation in installations
                    for way, of in (("ours", ours_of), ("native", native_of))]
            for pattern in patterns:
                found: dict[str, list[dict[str, Any]]] = {peer.name: [] for _, peer in ways}
                reasons: dict[str, str] = {}
                for _ in range(rounds):
                    for _, peer in ways:
                        say(f"{count} hosts x {each}: {pattern}: {peer.title}")
                        outcome = place.run(peer, case_of(pattern, count * each, place.folder / "data", 2))
                        found[peer.name] += outcome.records
                        if outcome.reason:
                            reasons[peer.name] = outcome.reason
                            print(f"{peer.title}: {outcome.reason}", file=sys.stderr)
                for way, peer in ways:
                    for operation in OPERATIONS:
                        row = {"family": peer.installation.family, "hosts": count, "ranks_per_host": each,
                               "pattern": pattern, "way": way, "operation": operation}
                        records = found[peer.name]
                        rows.append({**row, "seconds": least(records, operation)} if records
                                    else {**row, "reason": reasons.get(peer.name, "")})
    return rows
