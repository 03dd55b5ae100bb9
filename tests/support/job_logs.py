"""Small Darshan logs of a job with three POSIX records, for tests of what is summarised of a job."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from typing import Any

from click.testing import CliRunner, Result

from mpiio_ext.cli import main
from support.darshan_logs import Job, make_log, posix

OPENS, READS, WRITES, STATS, BYTES_READ, BYTES_WRITTEN = 0, 3, 4, 6, 14, 15
READ_TIME, WRITE_TIME, META_TIME = 8, 9, 10
#: In the interval of LMT's sample.
START = 1517126400


def log_at(path: pathlib.Path, records: list[bytes], mount: str = "/scratch1", **job: Any) -> pathlib.Path:
    names = {7: f"{mount}/a", 8: f"{mount}/b"}
    data = make_log(
        Job(**{"mounts": (("lustre", mount), ("ext4", "/")), **job}), names, {"POSIX": (4, b"".join(records))}
    )
    path.write_bytes(data)
    return path


RECORDS = [
    posix(7, 0, {OPENS: 1, BYTES_WRITTEN: 100, WRITES: 2}, {WRITE_TIME: 1.0, META_TIME: 0.5}),
    posix(7, 3, {OPENS: 2, BYTES_WRITTEN: 50, WRITES: 1, STATS: 4}, {WRITE_TIME: 2.0}),
    posix(8, 0, {OPENS: 1, BYTES_READ: 30, READS: -1}, {READ_TIME: 1.0}),
]


def written_log(
    path: pathlib.Path,
    run: tuple[int, int],
    span: tuple[float, float],
    *,
    job_id: int = 42,
    processes: int = 4,
    exe: str = "/bin/app",
    by_root: bool = True,
    bytes_written: int = 256 << 20,
    meta_time: float = 0.0,
    opens: int = 0,
) -> pathlib.Path:
    """Write the log of a program that writes one file in one go: by rank 0, or by all ranks alike.

    Parameters
    ----------
    path : the log; the file's name is made of it.
    run : start and end (s since `START`).
    span : first and last write (s since the start).
    """
    count, took = bytes_written >> 18, span[1] - span[0]
    share = bytes_written if by_root else bytes_written // processes
    counters = {
        OPENS: opens or processes,
        WRITES: count,
        BYTES_WRITTEN: bytes_written,
        17: bytes_written - 1,
        19: count - 1,
        21: count - 1,
        43: count,
        65: 1,
        66: 0 if by_root else share,
        67: 0,
        68: share,
    }
    times = {
        0: span[0],
        2: span[0],
        6: span[1],
        7: span[1],
        WRITE_TIME: took * (1 if by_root else processes),
        META_TIME: meta_time,
        13: 0.0 if by_root else took,
        14: took,
    }
    job = Job(start=START + run[0], end=START + run[1], processes=processes, job_id=job_id, exe=exe)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(make_log(job, {7: f"/scratch1/{path.stem}"}, {"POSIX": (4, posix(7, -1, counters, times))}))
    return path


def run(*arguments: object, status: int = 0) -> Result:
    """Run ``analyze`` with arguments, and check its exit status."""
    done = CliRunner().invoke(main, ["analyze", *map(str, arguments)])
    assert done.exit_code == status, done.output + repr(done.exception)
    return done


def told(logs: Sequence[pathlib.Path], *options: str, status: int = 0) -> Any:
    """Return what ``analyze logs --json`` prints."""
    return json.loads(run("logs", "--json", *options, *logs, status=status).stdout)


def causes(found: Any) -> list[str]:
    """Return the causes in the diagnoses of a log or step, the first one first; of one diagnosis, its own."""
    return [finding["cause"] for one in found.get("diagnosis", [found]) for finding in one["findings"]]
