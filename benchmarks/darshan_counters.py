"""Counters of our Darshan logs beside those of Darshan's own runtime, of the same programs.

Usage: ``python benchmarks/darshan_counters.py --darshan LIBDARSHAN.so [--ranks 4] [--library] [KIND]``

Runs each kind of the diagnosis corpus under the tracer and Darshan's runtime at the same time, so that both see the
same calls, makes a log of the trace, and compares every counter of every file that both have. ``--library`` runs the
program twice instead: under Darshan's runtime natively, and with the extension under it. Prints, for each counter, in
how many of the records it is equal, and the first difference.

Guarantees. A record that only one log has counts as a difference of the record. Times count as equal within 20 % or
0.2 ms, since each side reads its own clock around the other; moments within 20 ms.
"""

from __future__ import annotations

import argparse
import collections
import math
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Mapping

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from diagnosis_corpus import INPUT_BYTES, TIMEOUT_S, compiled  # noqa: E402
from diagnosis_truth import KINDS  # noqa: E402

import mpiio_ext  # noqa: E402
from mpiio_ext._load import get_tracer  # noqa: E402
from mpiio_ext.pioneer.darshan.convert import convert  # noqa: E402
from support.darshan_records import Key, Row, read_records  # noqa: E402
from support.launch import base_environment, launcher, run_bounded  # noqa: E402


def is_equal(name: str, one: float, other: float) -> bool:
    """Return whether two values of a counter are equal, times within what two clocks differ."""
    if "_F_" not in name:
        return one == other
    if name.endswith("VARIANCE_RANK_BYTES"):
        return math.isclose(one, other, rel_tol=1e-9)
    if name.endswith("TIMESTAMP"):
        return abs(one - other) < 0.02 and (one == 0) == (other == 0)
    return abs(one - other) < max(0.0002 if "VARIANCE" not in name else 1e-6, 0.2 * max(one, other))


def run(command: list[str], ranks: int, preload: list[str], variables: Mapping[str, str]) -> None:
    """Run a program with libraries preloaded into its ranks."""
    words = [launcher() or "mpiexec", "-n", str(ranks), "env", f"LD_PRELOAD={':'.join(preload)}"]
    words += [f"{name}={value}" for name, value in variables.items()]
    run_bounded([*words, *command], env=base_environment() | {"OMPI_MCA_io": "romio321"}, timeout_s=TIMEOUT_S)


def _fill(data: pathlib.Path) -> None:
    """Make the folder of the data as the programs want it."""
    shutil.rmtree(data, ignore_errors=True)
    (data / "slow").mkdir(parents=True)
    (data / "input").write_bytes(bytes(INPUT_BYTES))


def logs(program: str, kind: str, arguments: argparse.Namespace) -> tuple[dict[Key, Row], dict[Key, Row]]:
    """Return the records of Darshan's runtime and ours, of one kind."""
    tracer, extension = str(get_tracer()), str(mpiio_ext.get_library())
    with tempfile.TemporaryDirectory(dir=arguments.path) as folder:
        data, traces, theirs = (pathlib.Path(folder) / name for name in ("data", "traces", "logs"))
        words = [program, kind, str(data), "1"] if kind in KINDS else [program, str(data)]
        for path in (traces, theirs):
            path.mkdir()
        _fill(data)
        beside = {"DARSHAN_LOGPATH": str(theirs)}
        tracing = {"MPIOX_TRACE_DIR": str(traces), "MPIOX_TRACE_MODE": "recording" if arguments.recording else "trace"}
        if arguments.library:
            run(words, arguments.ranks, [arguments.darshan], beside)
            _fill(data)
            run(words, arguments.ranks, [tracer, extension], tracing)
        else:
            run(words, arguments.ranks, [tracer, arguments.darshan], beside | tracing)
        ours = pathlib.Path(folder) / "ours.darshan"
        convert(traces, ours)
        (native,) = theirs.rglob("*.darshan")
        return read_records(native), read_records(ours)


def compare(theirs: dict[Key, Row], ours: dict[Key, Row], kind: str, tally: collections.Counter[tuple[str, str]],
            first: dict[str, str]) -> None:  # fmt: skip
    """Count equal and different counters, and note the first difference of each."""
    for key in theirs.keys() ^ ours.keys():
        side = "Darshan's log alone" if key in theirs else "our log alone"
        tally[f"{key[0]} record", "different"] += 1
        first.setdefault(f"{key[0]} record", f"{kind}: {key[1]} rank {key[2]} is in {side}")
    for key in theirs.keys() & ours.keys():
        tally[f"{key[0]} record", "equal"] += 1
        for name, value in theirs[key].items():
            mine = ours[key][name]
            equal = is_equal(name, value, mine)
            tally[name, "equal" if equal else "different"] += 1
            if not equal:
                first.setdefault(name, f"{kind}: {value:g}, ours {mine:g}")


def main() -> None:
    """Run all kinds, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="default: all")
    parser.add_argument("--darshan", required=True, help="Darshan's runtime library for this MPI")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--library", action="store_true", help="ours with the extension, in a run of its own")
    parser.add_argument("--recording", action="store_true", help="ours from recordings, not from traces")
    parser.add_argument("--path", help="folder of the data (default: that of temporary files)")
    arguments = parser.parse_args()
    tally: collections.Counter[tuple[str, str]] = collections.Counter()
    first: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(folder, arguments.darshan)["program"]
        for kind in arguments.kinds or KINDS:
            compare(*logs(program, kind, arguments), kind, tally, first)
    print("| counter | records | equal | first difference |\n|---|---|---|---|")
    for name in dict.fromkeys(name for name, _ in tally):
        equal, different = tally[name, "equal"], tally[name, "different"]
        print(f"| `{name}` | {equal + different} | {equal} | {first.get(name, '')} |")


if __name__ == "__main__":
    main()
