"""Darshan logs for tests: where real ones lie, and logs made by hand or in bulk.

A log is a header (version, magic number, where each region lies), then regions compressed by zlib: the job, the names
of the files, and one for each module. Format 3.41 (Darshan 3.4) has 64 modules and times with nanoseconds, those before
it 16 modules and whole seconds.
"""

from __future__ import annotations

import bz2
import dataclasses
import pathlib
import random
import struct
import zlib
from collections.abc import Mapping, Sequence

from mpiio_ext.common.extras import darshan_library
from support.traces import DATA

MAGIC = 6567223
#: Where modules stand in the header: of format 3.41; older ones had fewer modules in front of LUSTRE and STDIO.
MODULES = {"POSIX": 1, "MPI-IO": 2, "H5F": 3, "LUSTRE": 8, "STDIO": 9, "HEATMAP": 15}
#: Numbers of a POSIX record of version 4.
POSIX_COUNTERS, POSIX_DOUBLES = 69, 17
OLDER = {"3.00": 2, "3.10": 2, "3.20": 1, "3.21": 1}


def packaged_logs() -> list[pathlib.Path]:
    """Return the logs that come with PyDarshan: examples and inputs of its tests."""
    package = pathlib.Path(darshan_library("a Darshan log", "pioneer")).parent.parent / "darshan"
    return sorted(package.rglob("*.darshan"))


def shared_logs() -> list[pathlib.Path]:
    """Return the real logs of the shared data; none where it is missing."""
    return sorted([*(DATA / "darshan").glob("*.darshan"), *(DATA / "tokio" / "samples").glob("*.darshan")])


def place_of(module: str | int, version: str) -> int:
    """Return the index of a module in the header."""
    if isinstance(module, int):
        return module
    return MODULES[module] - (OLDER.get(version, 0) if MODULES[module] >= MODULES["LUSTRE"] else 0)


@dataclasses.dataclass
class Job:
    """What the job's region says; times in seconds since 1970."""

    uid: int = 1000
    start: int = 1_700_000_000
    end: int = 1_700_000_010
    processes: int = 4
    job_id: int = 42
    start_ns: int = 0
    end_ns: int = 0
    metadata: str = "lib_ver=3.4.4\n"
    exe: str = "/home/me/bin/app -n 4"
    mounts: Sequence[tuple[str, str]] = (("lustre", "/scratch"), ("ext4", "/"))  # type, path


@dataclasses.dataclass
class Log:
    """A log in parts; regions are as they are in the file, that is compressed."""

    version: str
    job: bytes  # the whole region, not compressed
    names: bytes
    modules: dict[int, tuple[int, bytes]]  # index -> version, region
    partial: int = 0  # bit k: module k is incomplete

    @property
    def is_new(self) -> bool:
        return float(self.version) >= 3.41

    def module(self, name: str) -> bytes:
        """Return the records of a module, as they lie in memory; a region may be several streams of zlib."""
        left, data = self.modules[place_of(name, self.version)][1], []
        while left:
            stream = zlib.decompressobj()
            data.append(stream.decompress(left))
            left = stream.unused_data
        return b"".join(data)

    @classmethod
    def parse(cls, data: bytes) -> Log:
        """Take a log of this machine's byte order apart."""
        version = data[:8].rstrip(b"\0").decode()
        new = float(version) >= 3.41
        count, at = (64, 32) if new else (16, 24)
        partial = struct.unpack_from("<Q", data, 24)[0] if new else struct.unpack_from("<I", data, 20)[0]
        name_map, *maps = struct.iter_unpack("<QQ", data[at : at + 16 * (count + 1)])
        versions = struct.unpack_from(f"<{count}I", data, at + 16 * (count + 1))
        modules = {k: (versions[k], data[off : off + size]) for k, (off, size) in enumerate(maps) if size}
        job = zlib.decompressobj().decompress(data[at + 16 * (count + 1) + 4 * count :])
        return cls(version, job, data[name_map[0] : sum(name_map)], modules, partial)

    def pack(self, level: int = 1, order: str = "<", how: int = 0) -> bytes:
        """Return the log as the bytes of a file.

        `order`: of its bytes, as in :mod:`struct`; `how` 1 (of little-endian ones): compressed by bzip2, 2: not at all.
        """
        count, at = (64, 32) if self.is_new else (16, 24)
        header_bytes = at + 16 * (count + 1) + 4 * count

        def packed(region: bytes) -> bytes:
            return (
                region if how == 0 else bz2.compress(zlib.decompress(region)) if how == 1 else zlib.decompress(region)
            )

        regions = [packed(zlib.compress(self.job, level))]
        end = header_bytes + len(regions[0])
        maps, versions = [(0, 0)] * (count + 1), [0] * count
        for place, version, region in [(0, 0, self.names), *((k + 1, *self.modules[k]) for k in sorted(self.modules))]:
            if region:
                regions.append(packed(region))
                maps[place] = (end, len(regions[-1]))
                end += len(regions[-1])
            if place:
                versions[place - 1] = version
        head = self.version.encode().ljust(8, b"\0") + struct.pack(f"{order}q", MAGIC)
        head += struct.pack(f"{order}{'QQ' if self.is_new else 'II'}", how, self.partial)
        flat = [number for pair in maps for number in pair]
        return b"".join([head, struct.pack(f"{order}{len(flat)}Q{count}I", *flat, *versions), *regions])


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return a log with a few bytes or bits changed, a piece taken out, put in, or repeated."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, size = rng.randrange(len(changed)), rng.randrange(1, 40)
        how = rng.randrange(5)
        if how == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            changed[at] = rng.randrange(256)
        elif how == 2:
            del changed[at : at + size]
        elif how == 3:
            changed[at:at] = changed[at : at + size]
        else:
            changed[at : at + 8] = struct.pack("<q", rng.choice((-1, 0, 1 << 31, 1 << 62, -(1 << 63), 1 << 20)))
    return bytes(changed)


def mutated_inside(data: bytes, rng: random.Random) -> bytes:
    """Return a log of which one region was changed before it was compressed: what no checksum of zlib notices."""
    log = Log.parse(data)
    which = rng.choice(["job", "names", *log.modules])
    if which == "job":
        log.job = mutated(log.job, rng)
    elif which == "names":
        log.names = zlib.compress(mutated(zlib.decompress(log.names), rng))
    elif isinstance(which, int):
        version, region = log.modules[which]
        log.modules[which] = (version, zlib.compress(mutated(zlib.decompressobj().decompress(region), rng)))
    return log.pack()


def pack_job(job: Job, new: bool, order: str = "<") -> bytes:
    """Return the region of a job (not compressed)."""
    if new:
        times = (job.start, job.start_ns, job.end, job.end_ns)
    else:
        times = (job.start, job.end)
    numbers = (job.uid, *times, job.processes, job.job_id)
    text = job.exe + "".join(f"\n{kind}\t{path}" for kind, path in job.mounts)
    return (
        struct.pack(f"{order}{len(numbers)}q", *numbers)
        + job.metadata.encode().ljust(1024, b"\0")
        + text.encode()
        + b"\0"
    )


def make_log(
    job: Job,
    names: Mapping[int, str],
    modules: Mapping[str | int, tuple[int, bytes]],
    version: str = "3.41",
    partial: Sequence[str] = (),
    order: str = "<",
) -> bytes:
    """Return a log; `modules`: name or index -> version and records as they lie in memory, in the order of bytes."""
    texts = [(key, name.encode("utf-8", "surrogateescape")) for key, name in names.items()]
    packed = b"".join(struct.pack(f"{order}Q", key) + text + b"\0" for key, text in texts)
    regions = {place_of(key, version): (number, zlib.compress(data)) for key, (number, data) in modules.items()}
    log = Log(version, b"", zlib.compress(packed) if packed else b"", regions)
    log.partial = sum(1 << place_of(name, version) for name in partial)
    log.job = pack_job(job, log.is_new, order)
    return log.pack(order=order)


def posix(key: int, rank: int, counters: dict[int, int], doubles: dict[int, float] | None = None) -> bytes:
    """Return a POSIX record of version 4; counters that are not given are 0."""
    integers = [counters.get(k, 0) for k in range(POSIX_COUNTERS)]
    times = [(doubles or {}).get(k, 0.0) for k in range(POSIX_DOUBLES)]
    return struct.pack(f"<Qq{POSIX_COUNTERS}q{POSIX_DOUBLES}d", key, rank, *integers, *times)


def write_small_logs(folder: pathlib.Path, count: int) -> list[str]:
    """Write `count` distinct small logs into `folder`, of one to nine files each; return their names, as written.

    They are PyDarshan's small examples (of Darshan 3.2.1, 1 to 4 kB) under other job ids and start times; every tenth
    log has the job id of the one before.
    """
    logs = [Log.parse(path.read_bytes()) for path in packaged_logs() if path.stat().st_size < 5000]
    names = []
    for number in range(count):
        log = logs[number % len(logs)]
        uid, start, end, processes, _ = struct.unpack_from("<5q", log.job)
        later, job_id = 86_400 * number, 1_000_000 + number - number // 10
        job = struct.pack("<5q", uid, start + later, end + later, processes, job_id) + log.job[40:]
        names.append(f"user_app_id{job_id}_{number}.darshan")
        (folder / names[-1]).write_bytes(dataclasses.replace(log, job=job).pack())
    return names
