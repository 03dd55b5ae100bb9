"""Try the advice that is a command: run programs whose problem is known natively, and as the advice says, in turn.

    build/openmpi/venv/bin/python tests/corpora/advice_trials.py [ROUNDS]    # 3 rounds: some minutes

Each program of the corpus whose cause has such advice runs on pretended storage (100 us a request, 200 MB/s a rank), 4
ranks: natively, as it was planted (ROMIO of Open MPI), then with the command of the advice. Prints the medians of the
seconds that its accesses took, and the median, least and largest of the ratios within a round.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from corpora import diagnosis_corpus
from support import cbuild
from support.launch import base_environment, launcher, run_bounded

RANKS = 4
STORAGE = {"SLOW_STORAGE_US": "100", "SLOW_STORAGE_MBPS": "200"}
#: Advice of analytics/diagnosis/advice.py: the hints of its command, and the kinds that it is given for.
TRIALS = {
    "delegates": (("mpiox_delegates=per_node=1",), ("small_independent",)),
    "collective_buffering": (("romio_cb_write=enable", "mpiox_exchange=two_phase"), ("no_buffering",)),
    "no_sieving": ((), ("read_modify_write", "view_sieved", "sieved_records", "collective_holes")),
    "aggregators": (("cb_nodes=4", "romio_cb_write=enable"), ("few_aggregators", "one_aggregator_rows")),
    "aggregators, reads": (("cb_nodes=4", "romio_cb_read=enable"), ("one_aggregator_read",)),
}


def seconds(kind: str, hints: tuple[str, ...] | None) -> float:
    """Return how long the accesses of a program took; `hints` None: natively."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        data = pathlib.Path(made, "data")
        diagnosis_corpus.prepare(data)
        own = STORAGE | {"SLOW_STORAGE_PATH": str(data), "LD_PRELOAD": cbuild.slow_storage()}
        program = [diagnosis_corpus.program(), kind, str(data), "1"]
        start = [str(launcher()), "-n", str(RANKS), "env", *(f"{key}={value}" for key, value in own.items())]
        under = [
            sys.executable,
            "-m",
            "mpiio_ext",
            "run",
            *(word for hint in hints or () for word in ("-H", hint)),
            "--",
        ]
        command = [*start, *program] if hints is None else [*start, *under, *program]
        environment = base_environment() | {"OMPI_MCA_io": "romio321"}
        done = run_bounded(command, env=environment, timeout_s=300)
    return next(float(line.split()[1]) for line in done.stdout.splitlines() if line.split(" ")[0] == kind)


def main(rounds: int) -> None:
    """Run all, print a line for each program."""
    for advice, (hints, kinds) in TRIALS.items():
        for kind in kinds:
            pairs = [(seconds(kind, None), seconds(kind, hints)) for _ in range(rounds)]
            ratios = sorted(native / ours for native, ours in pairs)
            native, ours = (statistics.median(each) for each in zip(*pairs, strict=True))
            print(
                f"{advice:20} {kind:19} {native:7.3f} s, {ours:7.3f} s: {statistics.median(ratios):4.1f} times as fast"
                f" ({ratios[0]:.1f} to {ratios[-1]:.1f})",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
