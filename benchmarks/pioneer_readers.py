"""What PIONEER's readers cost: lines and rows a second of one core's processor time, and memory at two sizes.

Traces of every format are made, of --lines lines and of four times as many: calls as real traces have them, repeated
with other times and offsets (Darshan's: the logs that PyDarshan comes with, or those of --darshan, one several times;
our own: a C program under the tracer). Each is read in a process of its own, to the end, once by the reader alone and
once with phase A behind it, into a Parquet file (`sanitize_to`, which reads a trace again where clocks or names have to
be corrected).
Processor time counts (user and system, of the process and of what it starts), so that a busy machine disturbs little;
memory is the process's largest. Prints both and writes them as JSON, and what misses the targets: a million lines a
second of each format of text, read alone and sanitized into the file, and memory at four times the size not more than
a tenth above.

    build/openmpi/venv/bin/python benchmarks/pioneer_readers.py --json FILE       # two minutes
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TARGET_LINES_S, TARGET_MEMORY = 1e6, 1.1
LARGER = 4
#: Formats whose lines are text; the others have records, and no target.
TEXT = ("strace", "ltrace", "lanl", "dftracer 2024", "dftracer 2024, gzip", "dftracer", "dftracer, gzip",
        "recorder, text", "recorder, parquet")  # fmt: skip
READ = r"""
import json, resource, sys
from pathlib import Path
from mpiio_ext.pioneer.readers import reader_of
from mpiio_ext.pioneer.traces import sanitize_to
name, target, *paths = sys.argv[1:]
paths = [Path(path) for path in paths]

def seconds():
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, WHO))

WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
STATUS = Path("/proc/self/status")  # ru_maxrss has that of the process which has started this one in it
reader = reader_of(name)
begun = seconds()
if target:
    counts = [0]
    info = sanitize_to(Path(target), paths, name, progress=counts.append)
    rows = counts[-1]
else:
    info, batches = reader.read(paths)
    rows = sum(len(batch) for batch in batches)
spent = seconds() - begun
print(json.dumps({"lines": sum(source.lines for source in info.sources), "rows": rows, "skipped": info.skipped,
                  "seconds": spent, "memory_bytes": 1024 * int(STATUS.read_text().split("VmHWM:")[1].split()[0])}))
"""
LOOP = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    const int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    long failed = argc != 3;
    for (long i = 0; i + 1 < atol(argv[2]); i += 2)
        failed += (lseek(fd, i & 4095, SEEK_SET) < 0) + (write(fd, "x", 1) != 1);
    return failed != 0;
}
"""


# ---- lines -----------------------------------------------------------------------------------------------------------


def strace_lines(count: int) -> Iterator[str]:
    """Yield lines of ``strace -f -ttt -T -y``."""
    for i in range(count):
        at, place = f"{1600000000 + i * 4e-5:.6f}", 65536 * i
        yield (f'2001 {at} openat(AT_FDCWD</data>, "/data/out.{i % 7}", O_RDWR|O_CREAT, 0644) = '
               f"3</data/out.{i % 7}> <0.000021>",
               f'2001 {at} pwrite64(3</data/out.1>, "\\1\\2\\3\\4\\5\\6\\7\\10"..., 65536, {place}) = 65536 <0.000034>',
               f"200{i % 4 + 1} {at} lseek(3</data/out.1>, {place}, SEEK_SET) = {place} <0.000004>",
               f'2002 {at} read(4</data/in.nc>, "CDF\\2\\0\\0"..., 4096) = 4096 <0.000011>',
               f"2003 {at} fstat(4</data/in.nc>, {{st_mode=S_IFREG|0644, st_size=4096, ...}}) = 0 <0.000005>",
               f'2004 {at} write(5</data/log>, "step {i}\\n", 9) = 9 <0.000009>',
               f"2001 {at} fsync(3</data/out.1>) = 0 <0.000310>",
               f"2001 {at} close(3</data/out.1>) = 0 <0.000006>")[i % 8]  # fmt: skip


def _ltrace_line(i: int, at: str) -> str:
    return (f"{at} a.out->MPI_File_write_at(0x5581, {4096 * i}, 0x7f31a0, 512, 0x4c00080b, 0x7ffc10 <unfinished ...>",
            f'{at} SYS_pwrite64(9, "\\001\\002\\003"..., 4096, {4096 * (i - 1)}) = 4096 <0.000040>',
            f"{at} <... MPI_File_write_at resumed> ) = 0 <0.000090>",
            f'{at} SYS_open("/data/out.{i % 7}", 66, 0644) = 9 <0.000020>',
            f"{at} a.out->MPI_Barrier(0x44000000) = 0 <0.000020>",
            f"{at} SYS_lseek(9, {4096 * i}, 0) = {4096 * i} <0.000003>",
            f'{at} SYS_read(9, "abc\\n"..., 4096) = 4096 <0.000012>',
            f"{at} SYS_close(9) = 0 <0.000004>")[i % 8]  # fmt: skip


def ltrace_lines(count: int) -> Iterator[str]:
    """Yield lines of ``ltrace -f -S -tt -T``."""
    for i in range(count):
        second = i * 4e-5
        yield f"2001 {_ltrace_line(i, f'{int(second // 3600):02d}:{int(second // 60) % 60:02d}:{second % 60:09.6f}')}"


def lanl_lines(count: int) -> Iterator[str]:
    """Yield lines of LANL-Trace's files: one for each process, times since 1970."""
    for i in range(count):
        yield _ltrace_line(i, f"{1159808385 + i * 4e-5:.6f}")


def _dftracer_call(i: int) -> tuple[str, str]:
    """Return the function of call i and what is told of it: seven files are open at a time, each for five calls."""
    descriptor, place = 3 + i % 7, 4096 * i
    moves = f'"count":4096,"ret":4096,"fd":{descriptor}'
    return (("open64", f'"flags":66,"mode":384,"ret":{descriptor}'),
            ("read", moves),
            ("lseek64", f'"fd":{descriptor},"whence":0,"offset":{place},"ret":{place}'),
            ("write", moves),
            ("close", f'"ret":0,"fd":{descriptor}'))[i // 7 % 5]  # fmt: skip


def dftracer_lines(count: int, *, old: bool) -> Iterator[str]:
    """Yield lines of DFTracer, in the schema of 2024 or in the later one."""
    table, phase = ("", '"M"') if old else ('"type":1,', "4")
    quote, call = ("", '"X"') if old else ('"', "1")
    yield "["
    for i in range(9):
        yield (f'{{"id":{i},"name":"FH","cat":"dftracer",{table}"pid":70,"tid":70,"ph":{phase},"args":{{"hhash":'
               f'{quote}5{quote},"name":"/data/cm1out_00000{i}.dat","value":{quote}33{i}{quote}}}}}')  # fmt: skip
    for i in range(count - 10):
        name, told = _dftracer_call(i)
        file = 330 + (i // 35 * 7 + i % 7) % 9
        yield (f'{{"id":{i},"name":"{name}","cat":"POSIX",{table}"pid":70,"tid":{70 + i % 2},'
               f'"ts":{1700000000000000 + 40 * i},"dur":{11 + i % 50},"ph":{call},"args":{{"hhash":{quote}5{quote},'
               f'"p_idx":-1,"level":2,"fhash":{quote}{file}{quote},{told}}}}}')  # fmt: skip


def recorder_lines(count: int) -> Iterator[str]:
    """Yield lines of ``recorder2text``."""
    for i in range(count):
        at = i * 4e-5
        yield (f"{at:.9f} {at + 3e-5:.9f} MPI_File_write_at 0 1 ( 0x10 {4096 * i} 0x7f 512 MPI_DOUBLE 0x1 )",
               f"{at:.9f} {at + 2e-5:.9f} pwrite 1 0 ( /data/out.{i % 7} 0x7f 4096 {4096 * i} )",
               f"{at:.9f} {at + 1e-5:.9f} lseek 0 0 ( /data/out.1 {4096 * i} 0 )",
               f"{at:.9f} {at + 1e-5:.9f} open 0 0 ( /data/out.{i % 7} 66 384 )",
               f"{at:.9f} {at + 1e-5:.9f} read 0 0 ( /data/in.nc 0x7f 4096 )",
               f"{at:.9f} {at + 1e-5:.9f} H5Dwrite 0 3 ( 1 2 3 )",
               f"{at:.9f} {at + 1e-5:.9f} MPI_Barrier 0 2 ( MPI_COMM_WORLD )",
               f"{at:.9f} {at + 1e-5:.9f} close 0 0 ( /data/out.1 )")[i % 8]  # fmt: skip


# ---- traces ----------------------------------------------------------------------------------------------------------


def _written(path: Path, lines: Iterator[str], *, packed: bool = False) -> list[Path]:
    with gzip.open(path, "wt", compresslevel=6) if packed else path.open("w") as file:
        for line in lines:
            file.write(line + "\n")
    return [path]


def _lanl(folder: Path, count: int) -> list[Path]:
    timing = [f"{rank}: host{rank} ({100 + rank}) {what} barrier at {1159808385 + at}.0\n" for rank in range(2)
              for at, what in ((0, "Entered"), (1, "Exited"))]  # fmt: skip
    for rank in range(2):
        _written(folder / f"raw.{100 + rank}", lanl_lines(count // 2))
    (folder / "timing").write_text("# Barrier before\n" + "".join(timing))
    return [folder]


def _recorder_parquet(folder: Path, count: int) -> list[Path]:
    """Write what recorder2parquet makes: times of 32 bits, arguments as texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"rank": pa.int32(), "thread_id": pa.int32(), "tstart": pa.float32(), "tend": pa.float32(),
             "func_id": pa.string(), "arg_count": pa.int32(), **{f"args_{i + 1}": pa.string() for i in range(10)}}
    lines, schema = recorder_lines(count), pa.schema(list(kinds.items()))
    with pq.ParquetWriter(folder / "0.parquet", schema, write_page_checksum=True) as writer:
        while piece := [line for _, line in zip(range(50_000), lines, strict=False)]:
            words = [line.split() for line in piece]
            given = [word[6:-1] for word in words]
            columns = [[0] * len(words), [7] * len(words), [float(word[0]) for word in words],
                       [float(word[1]) for word in words], [word[2] for word in words], [len(one) for one in given],
                       *([one[i] if i < len(one) else "" for one in given] for i in range(10))]  # fmt: skip
            arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds.values(), strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    return [folder / "0.parquet"]


def _own(folder: Path, count: int) -> list[Path]:
    from mpiio_ext._load import get_tracer

    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O2", "-x", "c", "-", "-o", folder / "loop"], input=LOOP, text=True, check=True)
    environment = os.environ | {"LD_PRELOAD": str(get_tracer()), "MPIOX_TRACE_DIR": str(folder / "trace")}
    subprocess.run([folder / "loop", folder / "file", str(count)], env=environment, check=True)
    return [folder / "trace"]


def _darshan(count: int, given: Path | None) -> list[Path]:
    """Return one log, several times; a log of 100,000 records counts as so many lines."""
    if given is None:
        import darshan

        given = Path(darshan.__file__).parent / "examples" / "example_logs" / "dxt.darshan"
    return [given] * max(1, count // 100_000)


def traces(darshan: Path | None) -> dict[str, tuple[str, Callable[[Path, int], list[Path]]]]:
    """Return format -> (reader, function that makes a trace of so many lines in a folder)."""
    return {
        "strace": ("strace", lambda folder, n: _written(folder / "trace.strace", strace_lines(n))),
        "ltrace": ("ltrace", lambda folder, n: _written(folder / "trace.ltrace", ltrace_lines(n))),
        "lanl": ("ltrace", _lanl),
        "dftracer 2024": ("dftracer", lambda folder, n: _written(folder / "a.pfw", dftracer_lines(n, old=True))),
        "dftracer 2024, gzip": ("dftracer", lambda folder, n: _written(
            folder / "a.pfw.gz", dftracer_lines(n, old=True), packed=True)),
        "dftracer": ("dftracer", lambda folder, n: _written(folder / "a.pfw", dftracer_lines(n, old=False))),
        "dftracer, gzip": ("dftracer", lambda folder, n: _written(
            folder / "a.pfw.gz", dftracer_lines(n, old=False), packed=True)),
        "recorder, text": ("recorder", lambda folder, n: _written(folder / "0.txt", recorder_lines(n))),
        "recorder, parquet": ("recorder", _recorder_parquet),
        "own": ("mpiio_ext", _own),
        "dxt": ("dxt", lambda _, n: _darshan(n, darshan)),
    }  # fmt: skip


# ---- measuring -------------------------------------------------------------------------------------------------------


def _measured(
    reader: str, paths: list[Path], parent: str | None, *, sanitize: bool, repetitions: int
) -> dict[str, Any]:
    """Return what reading takes: the fastest of the repetitions, and the largest memory."""
    with tempfile.TemporaryDirectory(prefix="mpiox_readers_", dir=parent) as folder:
        target = str(Path(folder) / "sanitized.parquet") if sanitize else ""
        words = [sys.executable, "-c", READ, reader, target, *map(str, paths)]
        found = [json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
                 for _ in range(repetitions)]  # fmt: skip
    best: dict[str, Any] = min(found, key=lambda one: one["seconds"])
    best["memory_bytes"] = max(one["memory_bytes"] for one in found)
    best["lines_s"], best["rows_s"] = (best[name] / best["seconds"] for name in ("lines", "rows"))
    return best


def _missed(name: str, one: dict[str, Any]) -> list[str]:
    found = []
    for what in ("reader", "sanitized"):
        if name in TEXT and one[what][1]["lines_s"] < TARGET_LINES_S:
            found.append(f"{name}, {what}: {one[what][1]['lines_s'] / 1e6:.2f} million lines a second")
        small, large = (each["memory_bytes"] for each in one[what])
        if large > TARGET_MEMORY * small:
            found.append(f"{name}, {what}: memory grows from {small >> 20} to {large >> 20} MiB")
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=300_000, help="of the smaller trace (300,000)")
    parser.add_argument("--repetitions", type=int, default=3, help="of each reading; the fastest counts (3)")
    parser.add_argument("--only", nargs="+", default=[], metavar="FORMAT", help="as the table names them (all)")
    parser.add_argument("--darshan", type=Path, metavar="LOG", help="a log with DXT (PyDarshan's example)")
    parser.add_argument("--path", default=None, help="folder for the traces (that for temporary files)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there, too")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    missed: list[str] = []
    print("trace                       lines  M lines/s  M rows/s   MiB  sanitized   MiB")
    for name, (reader, make) in traces(options.darshan).items():
        if options.only and name not in options.only:
            continue
        one: dict[str, Any] = {"reader": [], "sanitized": []}
        for count in (options.lines, LARGER * options.lines):
            folder = Path(tempfile.mkdtemp(prefix="mpiox_readers_", dir=options.path))
            try:
                paths = make(folder, count)
                for what in ("reader", "sanitized"):
                    one[what].append(_measured(reader, paths, options.path, sanitize=what == "sanitized",
                                               repetitions=options.repetitions))  # fmt: skip
            except ImportError as error:
                print(f"{name:22s} left out: {error}")
                break
            finally:
                shutil.rmtree(folder)
            alone, behind = one["reader"][-1], one["sanitized"][-1]
            print(f"{name:22s} {alone['lines']:10,d} {alone['lines_s'] / 1e6:10.2f} {alone['rows_s'] / 1e6:9.2f} "
                  f"{alone['memory_bytes'] >> 20:5d} {behind['lines_s'] / 1e6:10.2f} "
                  f"{behind['memory_bytes'] >> 20:5d}", flush=True)  # fmt: skip
        if len(one["reader"]) == 2:
            found[name] = one
            missed += _missed(name, one)
    print("targets met" if not missed else f"targets missed: {'; '.join(missed)}")
    if options.json is not None:
        document = {"cores": os.cpu_count(), "load": os.getloadavg()[0], "traces": found, "missed": missed}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
