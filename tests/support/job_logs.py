"""Small Darshan logs of a job with three POSIX records, for tests of what is summarised of a job."""

from __future__ import annotations

import pathlib
from typing import Any

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
