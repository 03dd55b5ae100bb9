"""How fast `mpiio-ext subfiles merge` is beside `cp` of a plain file of the same size.

Start: python benchmarks/subfiles_merge.py --folder FOLDER

Both write a new file on the file system of --folder, and take turns, each first in every other round. Before each the
disk has all that was written, and what is copied was read once, so that it lies in the page cache where that has room;
with --cold it was dropped from there, which tmpfs cannot. With --sync both are followed by a sync of the file. The file
is of random bytes. The target is removed outside of the time. Beside the time, processor time is printed: it says more
on a loaded machine. PYTHONDONTWRITEBYTECODE has to be unset, else each merge compiles the command first.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLOCK = 1 << 24


def prepare(sources: list[Path], *, cold: bool) -> None:
    """Bring all to the disk; then read files into the page cache, or drop them from there."""
    os.sync()
    for path in sources:
        with path.open("rb", buffering=0) as stream:
            if cold:
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while not cold and stream.read(BLOCK):
                pass


def processor_s() -> float:
    """Return the processor time of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(words: list[str], target: Path, *, sync: bool) -> tuple[float, float]:
    """Return the time, and processor time, of a command that writes a file; the file is removed."""
    before_s, begin_s = processor_s(), time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    if sync:
        with target.open("rb") as stream:
            os.fsync(stream.fileno())
    took_s = time.monotonic() - begin_s
    target.unlink()
    return took_s, processor_s() - before_s


def told(found: dict[str, list[tuple[float, float]]], which: int) -> str:
    """Return one of the two numbers in words: the share of cp's speed, medians and ranges."""
    times = {way: [both[which] for both in each] for way, each in found.items()}
    middle = {way: statistics.median(each) for way, each in times.items()}
    ranges = (f"{way} {middle[way]:.2f} s ({min(each):.2f} to {max(each):.2f})" for way, each in times.items())
    return f"{middle['cp'] / middle['merge']:.2f} of cp's speed, {', '.join(ranges)}"


def main() -> None:
    """Measure, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--mebibytes", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--layouts", default="4:1M,16:1M,16:64K,16:4K", help="COUNT:UNIT,…")
    given = parser.parse_args()
    tool = [sys.executable, "-m", "mpiio_ext", "subfiles"]
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder, target = Path(name), Path(name) / "target"
        with (folder / "plain").open("wb") as stream:
            for _ in range(given.mebibytes * (1 << 20) // BLOCK):
                stream.write(os.urandom(BLOCK))
        for layout in given.layouts.split(","):
            count, unit = layout.split(":")
            index = folder / "index"
            split = [*tool, "split", str(folder / "plain"), "-o", str(index), "--count", count, "--unit", unit]
            subprocess.run(split, check=True, stdout=subprocess.DEVNULL)
            ways = {"cp": ["cp", str(folder / "plain"), str(target)],
                    "merge": [*tool, "merge", str(index), "-o", str(target)]}  # fmt: skip
            sources = {"cp": [folder / "plain"], "merge": sorted((folder / "index.subfiles").iterdir())}
            found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
            for number in range(given.rounds):
                for way, words in list(ways.items())[:: -1 if number % 2 else 1]:
                    prepare(sources[way], cold=given.cold)
                    found[way].append(seconds(words, target, sync=given.sync))
            print(f"{count} subfiles of {unit}: {told(found, 0)}; processor {told(found, 1)}", flush=True)
            subprocess.run([*tool, "rm", str(index)], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
