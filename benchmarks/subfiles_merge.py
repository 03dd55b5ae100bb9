"""How fast `mpiio-ext subfiles merge` is beside `cp` of a plain file of the same size.

Start: python benchmarks/subfiles_merge.py --folder FOLDER

Both write a new file on the file system of --folder, and take turns. With --sync both are followed by a sync of the
file. The file is of random bytes; it lies in the page cache where that has room for three of it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLOCK = 1 << 24


def seconds(words: list[str], target: Path, *, sync: bool) -> float:
    """Return the time of a command that writes a file; the file is removed."""
    os.sync()
    begin_s = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    if sync:
        with target.open("rb") as stream:
            os.fsync(stream.fileno())
    took_s = time.monotonic() - begin_s
    target.unlink()
    return took_s


def main() -> None:
    """Measure, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--mebibytes", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sync", action="store_true")
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
            found: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(given.rounds):
                for way, words in ways.items():
                    found[way].append(seconds(words, target, sync=given.sync))
            middle = {way: statistics.median(times) for way, times in found.items()}
            ranges = ", ".join(f"{way} {middle[way]:.2f} s ({min(times):.2f} to {max(times):.2f})"
                               for way, times in found.items())  # fmt: skip
            share = middle["cp"] / middle["merge"]
            print(f"{count} subfiles of {unit}: {share:.2f} of cp's speed: {ranges}", flush=True)
            subprocess.run([*tool, "rm", str(index)], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
