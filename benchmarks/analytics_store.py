"""How quickly logs become tables, and how long it takes to find out that nothing is new.

    python benchmarks/analytics_store.py --logs 20000 --cores 2            # Darshan logs
    python benchmarks/analytics_store.py --logs 100000 --cores 2 --fake    # everything but reading Darshan's format

The Darshan logs are copies of PyDarshan's small example logs, made distinct by bytes behind their end, which no reader
looks at. ``--fake`` takes lines of text and a connector that only splits them: what the store itself costs. Everything
lies in a temporary folder (``--folder``).
"""

from __future__ import annotations

import argparse
import importlib
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from mpiio_ext.analytics.setup import Setup, load_setup
from mpiio_ext.analytics.sources.base import Connector, Converted, Outcome
from mpiio_ext.analytics.store.catalog import Catalog
from mpiio_ext.analytics.store.fill import Report, fill
from mpiio_ext.analytics.tables.schema import TABLES

#: Example logs up to this size count as small.
SMALL_BYTES = 16 << 10
FILES_A_JOB = 10


def convert_lines(logs: Sequence[str], root: str) -> Converted:
    """Convert logs of ``--fake``: a job ID each, FILES_A_JOB files."""
    numbers = [int((Path(root) / log).read_text()) for log in logs]
    ids = list(range(1, len(logs) + 1))
    job = pa.table({"job_id": numbers, "log_id": ids, "source": ["darshan"] * len(logs)})
    many = [k for k in ids for _ in range(FILES_A_JOB)]
    file = pa.table({
        "job_id": [numbers[k - 1] for k in many], "log_id": many, "source": ["darshan"] * len(many),
        "file": [f"/scratch/user/run{numbers[k - 1]}/file{at % FILES_A_JOB}" for at, k in enumerate(many)],
        "bytes_written": [numbers[k - 1] * 7919 % 10**9 for k in many], "osts": [[k % 248] for k in many],
    })
    outcomes = [Outcome(log, "whole", "", k) for log, k in zip(logs, ids, strict=True)]
    return Converted({"darshan_job": job, "darshan_file": file.cast(
        pa.schema([TABLES["darshan_file"].schema().field(name) for name in file.column_names]))}, outcomes)


def make_logs(folder: Path, count: int, fake: bool) -> None:
    """Write the logs, a thousand a folder."""
    samples = [] if fake else _samples()
    for number in range(count):
        place = folder / "2018" / "1" / str(number // 1000 % 28 + 1)
        if number % 1000 == 0:
            place.mkdir(parents=True, exist_ok=True)
        line = f"{number * 7 % count + 1}".encode()
        data = line if fake else samples[number % len(samples)] + number.to_bytes(8, "big")
        (place / f"log{number}.darshan").write_bytes(data)


def _samples() -> list[bytes]:
    import darshan

    folder = Path(darshan.__file__).parent / "examples" / "example_logs"
    found = [path.read_bytes() for path in sorted(folder.glob("*.darshan")) if path.stat().st_size <= SMALL_BYTES]
    if not found:
        sys.exit(f"{folder}: no example logs of PyDarshan")
    return found


def run(setup: Setup, connectors: dict[str, Connector]) -> tuple[Report, float]:
    """Fill the store once; return what was done, and the seconds."""
    began = time.perf_counter()
    report = fill(setup, connectors=connectors)
    return report, time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=20_000)
    parser.add_argument("--cores", type=int, default=1, help="worker processes")
    parser.add_argument("--fake", action="store_true", help="lines of text in the place of Darshan logs")
    parser.add_argument("--folder", type=Path, help="where to put logs and store; default: a temporary folder")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="analytics-store-", dir=options.folder))
    try:
        make_logs(folder / "logs", options.logs, options.fake)
        setup = load_setup({"store": "store", "inputs": {"darshan": ["logs"]}, "workers": options.cores}, folder)
        connectors: dict[str, Connector] = {}
        if options.fake:  # under the name by which workers can import it
            connectors["darshan"] = importlib.import_module("analytics_store").convert_lines
        report, seconds = run(setup, connectors)
        print(report)
        catalog = Catalog(setup.store)
        for name in ("darshan_job", "darshan_file"):
            size = sum(entry.bytes for entry in catalog.entries(name))
            print(f"{name}: {catalog.rows(name):,} rows in {len(catalog.files(name))} files, {size / 1e6:,.1f} MB")
        rate = options.logs / seconds
        print(f"filled in {seconds:.1f} s: {rate:,.0f} logs/s, {rate / options.cores:,.0f} logs/s per core")
        _, again = run(setup, connectors)
        print(f"filled again, nothing new: {again:.2f} s")
        memory = [resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        print(f"peak memory: {memory[0]:,.0f} MiB here, {memory[1]:,.0f} MiB in the largest worker")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
