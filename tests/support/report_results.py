"""Documents of results as the bench writes them, made of chosen or drawn figures, for the tests of the report."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from mpiio_ext.common.results import Row

__all__ = ["COMPARE", "COUNTERS", "METHODS", "document", "large_document", "row", "run", "write"]

METHODS = ("native", "native_tuned", "auto", "even", "aligned", "static_cyclic", "group_cyclic", "transpose")

ENVIRONMENT: dict[str, Any] = {
    "started": "2026-01-02T03:04:05+00:00",
    "command_line": "python -m mpiio_ext.bench --quick",
    "ranks": 4,
    "hosts": ["node1"],
    "ranks_per_host": 4,
    "kernel": "Linux 6.1",
    "machine": "x86_64",
    "cpu_model": "Some Processor",
    "cpus_online_count": 2,
    "memory_bytes": 1 << 34,
    "path": "/scratch/with space",
    "file_system_type": "ext4",
    "mpi_library": "Open MPI v4.1.4, package: Debian OpenMPI",
    "git_revision": "0123456789ab",
    "versions": {"python": "3.11.7", "mpiio_ext": "0.1.0", "h5py": None, "hdf5": "1.10.8"},
    "variables": {"OMPI_MCA_ess": "^singleton", "OMPI_MCA_io": "romio321", "MPIOX_RANKS_PER_NODE": "2"},
}
CONFIGURATION: dict[str, Any] = {
    "sizes": {
        "file_bytes": 8388608,
        "blocks_bytes": [65536, 512],
        "transfer_bytes": 0,
        "piece_bytes": 4096,
        "ghost": 2,
        "steps": 5,
        "seed": 1,
    },
    "workloads": {"interleaved_512": {"class": "InterleavedBlocks", "ranks": 4, "block_bytes": 512, "blocks": 4096}},
    "kernels": {"flash": {"scale": 0.25, "unknowns": 24}, "bt": {"class": "A", "grid": 64}},
    "strategies": {"native": {"mpiox_enable": "false"}, "auto": {"mpiox_enable": "true", "mpiox_partition": "auto"}},
    "hints": {"cb_nodes": "2"},
    "repetitions": 3,
    "read_shift": 1,
}

#: What `bench compare --json` writes, cut down.
COMPARE: dict[str, Any] = {
    "environment": {"ranks": 4, "file_bytes": 67108864, "access": "collective"},
    "peers": {"ompio": "OMPIO", "mpiio_ext": "mpiio_ext", "raw": "raw pwrite/pread"},
    "results": [
        {
            "pattern": "inter64",
            "op": "write",
            "present": ["ompio", "mpiio_ext", "raw"],
            "mbytes_per_s": {"ompio": 111.4, "mpiio_ext": 3456.7, "raw": 4000.0},
            "spread_mbytes_per_s": {"ompio": [100.0, 120.0], "mpiio_ext": [3333.0, 3500.0], "raw": [4000.0, 4000.0]},
            "ours": "mpiio_ext",
            "best_native": "ompio",
            "ratio_native": 31.03,
            "ratio_raw": 0.864,
            "ratio_native_by_peer": {"mpiio_ext": 31.03},
            "memory_growth_bytes": {"ompio": 1},
            "open_close_s": {},
            "scaled_bytes": {"ompio": 16777216},
            "absent": {},
        },
        {
            "pattern": "inter8",
            "op": "read",
            "present": ["mpiio_ext"],
            "mbytes_per_s": {"mpiio_ext": 999.0},
            "spread_mbytes_per_s": {"mpiio_ext": [999.0, 999.0]},
            "ours": "mpiio_ext",
            "best_native": None,
            "ratio_native": None,
            "ratio_raw": None,
            "scaled_bytes": {},
            "absent": {"ompio": "took more than 20 s"},
        },
    ],
}

#: What a rank counts, but for what delegates do.
COUNTERS = (
    "collective_writes",
    "collective_reads",
    "native_calls",
    "rounds",
    "write_requests",
    "read_requests",
    "write_request_bytes",
    "read_request_bytes",
    "messages",
    "message_bytes",
    "plan_s",
    "exchange_s",
    "io_s",
    "wait_s",
    "independent_writes",
    "independent_reads",
    "independent_s",
)


def row(name: str, strategy: str, operation: str, **columns: Any) -> Row:
    """Return a run of 4 ranks by MPI-IO; `columns` replace or add some."""
    found: dict[str, Any] = {"workload": name, "variant": name, "label": name, "interface": "mpiio", "ranks": 4}
    found |= {"strategy": strategy, "operation": operation, "repetition": 0, "order": 0, "scaled": False}
    found |= {"file_bytes": 1000, "data_bytes": 1000, "open_s": 0.1, "view_s": 0.0, "data_s": 1.0, "close_s": 0.1}
    return Row(**found | columns)


def run(
    strategy: str = "auto", operation: str = "write", repetition: int = 0, bandwidth: float = 1000.0, **more: Any
) -> dict[str, Any]:
    """Return one entry of ``runs``; `more` replaces or adds columns."""
    extension = not strategy.startswith("native")
    record: dict[str, Any] = {
        "workload": "interleaved",
        "variant": "interleaved_512",
        "label": "interleaved blocks of 512 B",
        "interface": "mpiio",
        "strategy": strategy,
        "operation": operation,
        "repetition": repetition,
        "order": 0,
        "ranks": 4,
        "scaled": False,
        "file_bytes": 8000000,
        "data_bytes": 8000000,
        "open_s": 0.001,
        "view_s": 0.0005,
        "data_s": 8 / bandwidth,
        "close_s": 0.0002,
        "bandwidth_mb_per_s": bandwidth,
        "bandwidth_total_mb_per_s": bandwidth * 0.9,
        "ratio_to_native": None,
        "ratio_to_best_native": None,
        "collectives_taken_over": 4 if extension else 0,
        "native_calls": 0 if extension else 4,
        "rounds": 8 if extension else None,
        "requests": 16,
        "request_bytes": 8000000,
        "requests_source": "extension" if extension else "kernel",
        "messages": 0 if extension else None,
        "message_bytes": 0 if extension else None,
        "plan_s": 0.0001 if extension else None,
        "exchange_s": 0.001 if extension else None,
        "io_s": 0.002 if extension else None,
        "wait_s": 0.0005 if extension else None,
        "partition": "even" if extension else "",
        "reason": "two-phase: pieces are small or interleave" if extension else "",
        "gaps_written": False,
        "noncontiguous": True,
    }
    return record | more


def document(runs: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return a document of results that holds `runs`; `more` replaces or adds keys at the top."""
    return {
        "schema_version": 2,
        "environment": ENVIRONMENT,
        "configuration": CONFIGURATION,
        "failure": None,
        "absent": [],
        "summary": [],
        "runs": runs,
    } | more


def large_document(kernels: int = 30, repetitions: int = 5, seed: int = 1) -> dict[str, Any]:
    """Return results: `kernels` kernels under every method of `METHODS`, both operations."""
    draw = random.Random(seed)
    runs = []
    for kernel in range(kernels):
        interface = ("mpiio", "hdf5", "pnetcdf", "netcdf4")[kernel % 4]
        native, gain = 10 ** draw.uniform(2, 3.7), draw.uniform(0.9, 12)
        for strategy in METHODS:
            own = gain * draw.uniform(0.8, 1.2) if not strategy.startswith("native") else draw.uniform(0.8, 1.4)
            for operation in ("write", "read"):
                for repetition in range(repetitions):
                    ratio = 1.0 if strategy == "native" else own * draw.uniform(0.9, 1.15)
                    histogram = [0] * 48
                    for bucket in range(9, 9 + draw.randint(1, 12)):
                        histogram[bucket] = draw.randint(0, 10**6)
                    more: dict[str, Any] = {
                        "kind": "kernel",
                        "phase": ("", "S", "W", "C")[kernel % 3],
                        "noncontiguous": kernel % 5 > 0,
                        "files": 1,
                        "compared": ("bytes", "h5diff")[kernel % 2],
                        "ratio_to_native": ratio,
                        "request_size_log2": histogram if not strategy.startswith("native") else None,
                        "independents_taken_over": 3 if kernel % 4 == 0 else 0,
                        "independent_s": None if strategy.startswith("native") else 0.0003,
                    }
                    runs.append(
                        run(
                            strategy,
                            operation,
                            repetition,
                            native * ratio,
                            workload=f"kernel{kernel}",
                            variant=f"kernel{kernel}_variant",
                            label=f"kernel {kernel} of some length",
                            interface=interface,
                            partition="" if strategy.startswith("native") else "group_cyclic",
                            reason=""
                            if strategy.startswith("native")
                            else "two-phase: pieces are small or interleave; one page cache, no lock traffic",
                            messages=120,
                            message_bytes=120 * 65536,
                            **more,
                        )
                    )
    configuration = CONFIGURATION | {
        "kernels": {f"kernel{k}_variant": {"scale": 0.25, "grid": [64, 64, 64], "steps": 5} for k in range(kernels)}
    }
    return document(runs, configuration=configuration)


def write(path: Path, content: dict[str, Any]) -> Path:
    """Write a document and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
