"""A Darshan log's DXT records on standard output, for `dxt`: ``python -m ..._darshan_worker LOG MODULE...``.

Problem.   PyDarshan's library in C ends the process on many damaged logs (signals 6 and 11), and PyDarshan takes its
           errors for the end of the log.
Algorithm. This program reads with the functions of the library that PyDarshan wraps, and looks at what they return.
           Messages: the bytes of a JSON object, the bytes of data behind it (two 32-bit numbers), the object, the data:
           the segments of a record as the library has them, of writes, then of reads.
Guarantee. The last message of a log that was read to its end has the key "end"; without it something is missing.
"""

from __future__ import annotations

import json
import os
import resource
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO


def _put(out: BinaryIO, message: dict[str, Any], data: bytes = b"") -> None:
    text = json.dumps(message).encode()
    out.write(struct.pack("<II", len(text), len(data)) + text + data)


def _text(ffi: Any, value: Any) -> str:
    return str(ffi.string(value).decode("utf-8", "replace"))


def _records(backend: Any, log: dict[str, Any], module: str, index: int, out: BinaryIO) -> tuple[int, int]:
    """Write the records of a module; returns their number and what the library has said at the end: 0, or an error."""
    ffi, library = backend.ffi, backend.libdutil
    head, segment = ffi.sizeof("struct dxt_file_record"), ffi.sizeof("struct segment_info")
    number = 0
    while True:
        place = ffi.new("void **")
        code = library.darshan_log_get_record(log["handle"], index, place)
        if code < 1:
            return number, int(code)
        record = ffi.cast("struct dxt_file_record *", place[0])
        count = record.write_count + record.read_count
        _put(
            out,
            {"module": module, "id": record.base_rec.id, "rank": record.base_rec.rank,
             "host": _text(ffi, record.hostname), "writes": record.write_count, "reads": record.read_count},
            ffi.buffer(ffi.cast("char *", place[0]) + head, count * segment)[:],
        )  # fmt: skip
        library.darshan_free(place[0])
        number += 1


def _limit(size_bytes: int) -> None:
    """Bound what a damaged log can make the library do: time, memory, dumps."""
    seconds = 60 + size_bytes // 100_000
    for what, value in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, 16 << 30), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(what)[1]
        resource.setrlimit(what, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def main(path: str, wanted: list[str]) -> None:
    """Write everything that a log has of some modules."""
    _limit(Path(path).stat().st_size)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints
    from darshan.backend import cffi_backend as backend

    log = backend.log_open(path)
    if not log["handle"]:
        _put(out, {"problem": "PyDarshan does not open this log"})
        return
    job, modules = backend.log_get_job(log), backend.log_get_modules(log)
    start_ns = int(job["start_time_sec"]) * 10**9 + int(job.get("start_time_nsec", 0))
    known = [module for module in wanted if module in modules]
    lengths = {module: int(modules[module]["len"]) for module in known}
    _put(out, {"ranks": int(job["nprocs"]), "start_ns": start_ns, "modules": lengths})
    _put(out, {"names": {str(number): name for number, name in backend.log_get_name_records(log).items()}})
    for module in known:
        if modules[module].get("partial_flag"):
            _put(out, {"partial": module})
        number, code = _records(backend, log, module, modules[module]["idx"], out)
        if code != 0:
            _put(out, {"problem": f"{module}: the library's error {code}"})
        elif number == 0 and lengths[module] > 0:
            _put(out, {"problem": f"{module}: its {lengths[module]} bytes have no record"})
    _put(out, {"end": True})
    out.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
