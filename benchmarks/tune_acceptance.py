"""Does `mpiio-ext tune` find the best setting? Its choice against the best of a grid, in interleaved runs.

The program is tests/programs/btio_like.c (BT-IO, collective writes), judged by the bandwidth that it prints.
`mpiio-ext tune` searches, once from the defaults, once from a bad hand-set hints file (cb_nodes=1, cb_buffer_size=4k).
Then a grid of settings (ways × aggregators × buffer sizes, and the MPI library alone) is run completely, the best few
again to find the true best. At the end the grid's best and the choices run in turn, and their medians are compared: a
choice is a hints file, or the baseline itself where tuning says that nothing wins.

    build/openmpi/venv/bin/python benchmarks/tune_acceptance.py --folder /dev/shm --budget 60s

Exit status 1 if a choice has less than 90 % of the best bandwidth.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.prefix) / "bin"
BANDWIDTH = re.compile(r"write .*: ([0-9.]+) MB/s")
BAD = "cb_nodes = 1\ncb_buffer_size = 4k\n"
LEAST_SHARE = 0.9
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("MPIOX_")},
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


def grid(ranks: int) -> list[str]:
    """Return the settings of the exhaustive search, as rules of MPIOX_HINTS."""
    ways = ["", "mpiox_exchange=two_phase", "mpiox_partition=group_cyclic:mpiox_exchange=two_phase"]
    sizes = ["", "cb_buffer_size=64k", "cb_buffer_size=256k", "cb_buffer_size=1m", "cb_buffer_size=4m"]
    nodes = [f"cb_nodes={n}" for n in range(1, ranks + 1)]
    own = [":".join(word for word in words if word) for words in itertools.product(ways, nodes, sizes)]
    native = ["mpiox_enable=false", f"mpiox_enable=false:cb_nodes={ranks}:cb_config_list=*:*:romio_cb_write=enable"]
    return ["", "mpiox_exchange=direct", *native, *own]


def bandwidth(command: list[str], hints: str, hints_file: Path | None) -> float:
    """Return MB/s of one run under a rule of MPIOX_HINTS or a hints file; 0 where the program fails."""
    variables = {"MPIOX_HINTS": f"*:{hints}"} if hints else {}
    if hints_file is not None:
        variables["MPIOX_HINTS_FILE"] = str(hints_file)
    done = subprocess.run(
        [str(BIN / "mpiio-ext"), "run", "--", *command],
        env=ENVIRONMENT | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = BANDWIDTH.search(done.stdout)
    return float(found[1]) if done.returncode == 0 and found else 0.0


def best_of_grid(command: list[str], ranks: int, rounds: int) -> str:
    """Return the grid's best: every setting twice, the upper tenth `rounds` times more in turn."""
    seen = {hints: [bandwidth(command, hints, None) for _ in range(2)] for hints in grid(ranks)}
    close = sorted(seen, key=lambda hints: -max(seen[hints]))[: max(4, len(seen) // 10)]
    again: dict[str, list[float]] = {hints: [] for hints in close}
    for _ in range(rounds):
        for hints in random.sample(close, len(close)):
            again[hints].append(bandwidth(command, hints, None))
    for hints in sorted(close, key=lambda hints: -statistics.median(again[hints])):
        print(f"  grid: {statistics.median(again[hints]):8.1f} MB/s  {hints or '(defaults)'}", flush=True)
    return max(close, key=lambda hints: statistics.median(again[hints]))


def tune(command: list[str], budget: str, begin: Path | None, output: Path) -> Path | None:
    """Run mpiio-ext tune; return the hints file to use afterwards: the new one, or that of the baseline."""
    own = [] if begin is None else ["--hints-file", str(begin)]
    words = ["tune", "--budget", budget, "--metric-regex", BANDWIDTH.pattern, "-o", str(output), *own, "--", *command]
    tool = str(BIN / "mpiio-ext")
    done = subprocess.run([tool, *words], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr, flush=True)
    if done.returncode != 0:
        raise SystemExit(done.returncode)
    return output if output.exists() else begin


def main() -> int:
    """Compare; return the exit status."""
    parser = argparse.ArgumentParser(description="mpiio-ext tune against an exhaustive search")
    parser.add_argument("--folder", default="/dev/shm", help="where the file is written")
    parser.add_argument("--budget", default="60s", help="of each of the two runs of mpiio-ext tune")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--grid", default="64", help="grid points a side")
    parser.add_argument("--steps", default="6", help="time steps")
    parser.add_argument("--rounds", type=int, default=7, help="repetitions of what is compared")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory(dir=asked.folder) as files:
        here = Path(scratch)
        program, source = here / "btio_like", ROOT / "tests" / "programs" / "btio_like.c"
        subprocess.run([str(BIN / "mpicc"), "-O2", str(source), "-o", str(program)], check=True)
        command = [str(BIN / "mpirun"), "-n", str(asked.ranks), str(program), f"{files}/btio", asked.grid, asked.steps]
        (here / "bad.hints").write_text(BAD, encoding="utf-8")
        print("from the defaults:", flush=True)
        first = tune(command, asked.budget, None, here / "first.hints")
        print("from cb_nodes=1, cb_buffer_size=4k:", flush=True)
        second = tune(command, asked.budget, here / "bad.hints", here / "second.hints")
        best = best_of_grid(command, asked.ranks, asked.rounds)
        arms: dict[str, tuple[str, Path | None]] = {
            "best of the grid": (best, None),
            "tuned from the defaults": ("", first),
            "tuned from bad hints": ("", second),
            "defaults": ("", None),
            "bad hints": ("", here / "bad.hints"),
        }
        seen: dict[str, list[float]] = {name: [] for name in arms}
        for _ in range(asked.rounds):
            for name in random.sample(list(arms), len(arms)):
                seen[name].append(bandwidth(command, *arms[name]))
    reference = statistics.median(seen["best of the grid"])
    if reference == 0:
        raise SystemExit(f"most runs failed: is {asked.folder} there, and has it room?")
    for name, values in seen.items():
        middle = statistics.median(values)
        print(f"{name:26s} {middle:8.1f} MB/s ({min(values):.0f} … {max(values):.0f})  {middle / reference:6.1%}")
    tuned = min(statistics.median(seen[name]) for name in seen if name.startswith("tuned"))
    return 0 if tuned >= LEAST_SHARE * reference else 1


if __name__ == "__main__":
    raise SystemExit(main())
