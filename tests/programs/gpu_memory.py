"""MPI-IO of buffers in the memory of a pretended GPU; rank 0 prints what it saw as JSON, one line a rank.

Usage: gpu_memory.py HOW PATH SIZE [--kind KIND] [--fail RANK:NAME:N:RESULT] [--again] [--read] [-H name=value]...

HOW is a method of MPI.File without Write and Read: _all, _at_all, "" (independent), i (nonblocking) ... Rank r's bytes
are blocks of 512 bytes, each size-th one from the r-th on. The file has 0xee everywhere before.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

import mpiio_ext.stats  # before mpi4py.MPI

# isort: split
import numpy as np
from mpi4py import MPI

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.pretended_gpu import Count, Gpu, Kind

BLOCK = 512
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def call(file: MPI.File, verb: str, how: str, buffer: object) -> None:
    if how.startswith("i"):
        getattr(file, f"I{verb}{how[1:]}")(buffer).Wait()
    elif how.startswith("_at"):
        getattr(file, f"{verb.capitalize()}{how}")(0, buffer)
    else:
        getattr(file, f"{verb.capitalize()}{how}")(buffer)


def attempt(file: MPI.File, verb: str, how: str, buffer: object) -> str:
    """Make the call; return its error, "" for none."""
    try:
        file.Seek(0)
        call(file, verb, how, buffer)
    except MPI.Exception as error:
        return str(error.Get_error_string())
    return ""


parser = argparse.ArgumentParser()
parser.add_argument("how")
parser.add_argument("path")
parser.add_argument("size", type=int)
parser.add_argument("--kind", default="DEVICE")
parser.add_argument("--fail", default="")
parser.add_argument("--again", action="store_true")
parser.add_argument("--read", action="store_true")
parser.add_argument("--end", type=int, help="the file ends there")
parser.add_argument("--growing", action="store_true", help="before, the first 512, 1024, 1536 ... bytes are accessed")
parser.add_argument("--shift", type=int, default=0, help="bytes between the start of the GPU's memory and the buffer")
parser.add_argument("--whole", action="store_true", help="rank r's bytes are the r-th SIZE bytes of the file")
parser.add_argument("--mixed", action="store_true", help="the buffer's second half is in host memory")
parser.add_argument("-H", dest="hints", action="append", default=[])
options = parser.parse_args()
how, n, kind = options.how, options.size, Kind[options.kind]
gpu = Gpu()
if rank == 0:
    with open(options.path, "wb") as made:
        made.write(b"\xee" * (n * size))
data = np.random.default_rng(rank).integers(0, 200, n, dtype=np.uint8)
if rank == 0 and options.read:
    each = [np.random.default_rng(r).integers(0, 200, n, dtype=np.uint8) for r in range(size)]
    whole = np.concatenate(each) if options.whole else np.stack([mine.reshape(-1, BLOCK) for mine in each], axis=1)
    whole.tofile(options.path)
if rank == 0 and options.end is not None:
    os.truncate(options.path, options.end)
comm.Barrier()
info = MPI.Info.Create()
for pair in options.hints:
    info.Set(*pair.split("=", 1))
file = MPI.File.Open(comm, options.path, MPI.MODE_RDWR, info)
pieces = MPI.BYTE.Create_vector(n // BLOCK, BLOCK, BLOCK * size).Create_resized(0, n * size).Commit()
if options.whole:
    file.Set_view(rank * n)
else:
    file.Set_view(rank * BLOCK, MPI.BYTE, pieces)
there = options.shift + gpu.place(np.pad(np.zeros_like(data) if options.read else data, (options.shift, 0)), kind)
buffer = [MPI.buffer.fromaddress(there, n), n, MPI.BYTE]
if options.mixed:
    places = [there, MPI.Get_address(data) + n // 2]
    buffer = [MPI.BOTTOM, 1, MPI.BYTE.Create_hindexed([n // 2] * 2, places).Commit()]
who, _, failure = options.fail.partition(":")
if options.fail and int(who) == rank:
    os.environ["PRETENDED_GPU_FAIL"] = failure
verb = "read" if options.read else "write"
for part in range(BLOCK, n, BLOCK) if options.growing else ():
    attempt(file, verb, how, [buffer[0], part, MPI.BYTE])
errors = [attempt(file, verb, how, buffer)]
if options.again:
    os.environ.pop("PRETENDED_GPU_FAIL", None)
    errors.append(attempt(file, verb, how, buffer))
counted = mpiio_ext.stats.of(file)
closing = ""
try:
    file.Close()
except MPI.Exception as error:
    closing = str(error.Get_error_string())
right = bool((gpu.get(there, n) == data).all()) if options.read else True
seen = {
    "errors": errors,
    "closing": closing,
    "right": right,
    "copies": gpu.count(Count.COPIES),
    "most_registered": gpu.count(Count.MOST_REGISTERED),
    "most_under_way": gpu.count(Count.MOST_UNDER_WAY),
    "registered": gpu.count(Count.REGISTERED),
    "device_bytes_written": counted.device_bytes_written,
    "device_bytes_read": counted.device_bytes_read,
    "device_s": counted.device_s,
}
for line in comm.gather(seen) or []:
    print(json.dumps(line), flush=True)
