"""Logs of programs whose I/O problem is known, and what the diagnosis says of them.

Usage: ``python benchmarks/diagnosis_corpus.py --darshan LIBDARSHAN.so [--logs DIR] [--ranks 2,4] [--sizes 1] [KIND]``

Compiles ``diagnosis_kinds.c`` and runs each kind under Darshan's runtime with each number of ranks and each size, with
and without DXT. Keeps the logs in ``--logs`` with ``truth.jsonl`` beside them: log, kind, ranks, size. Then prints each
log whose first sentence is wrong, and precision and recall for each cause: of causes that are said with high
confidence. ``--check`` judges the logs of a folder and runs nothing.

Guarantees. The truth is what the program was told to do, not what its log says. Page caches of a small machine are
fast: a kind whose cost is not in the log (unaligned requests) has no cause that must be found, only ones that may not.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from mpiio_ext.analytics.diagnosis.activity import activity_of  # noqa: E402
from mpiio_ext.analytics.report.findings import diagnoses  # noqa: E402
from mpiio_ext.analytics.sources.darshan import convert  # noqa: E402
from mpiio_ext.common.counts import counts  # noqa: E402
from support.launch import base_environment, launcher, run_bounded  # noqa: E402

#: Kind -> the cause that is the first sentence; none where nothing may be said with high confidence.
CAUSES = {
    "one_writer": "root_writes", "one_reader": "root_reads", "few_aggregators": "few_aggregators",
    "no_buffering": "small_requests", "read_modify_write": "read_modify_write", "small_independent": "small_requests",
    "small_posix": "small_requests", "random_reads": "small_requests", "strided_reads": "small_requests",
    "metadata_storm": "metadata", "shared_opens": "shared_opens", "imbalance": "stragglers",
    "uneven_files": "stragglers", "even_files": "", "unaligned": "", "large_independent": "", "small_consecutive": "",
    "well_behaved": "", "little_io": "",
}  # fmt: skip
TIMEOUT_S = 300.0


def run(program: str, kind: str, ranks: int, size: int, dxt: bool, arguments: argparse.Namespace) -> str:
    """Run one kind; return the name of its log."""
    name = f"{kind}-{ranks}-{size}{'-dxt' if dxt else ''}.darshan"
    with tempfile.TemporaryDirectory(dir=arguments.path) as data, tempfile.TemporaryDirectory() as logs:
        command = [launcher() or "mpiexec", "-n", str(ranks), "env", f"LD_PRELOAD={arguments.darshan}"]
        command += [f"DARSHAN_LOGPATH={logs}", *(["DXT_ENABLE_IO_TRACE=1"] if dxt else [])]
        environment = base_environment() | {"OMPI_MCA_io": "romio321"}
        run_bounded([*command, program, kind, data, str(size)], env=environment, timeout_s=TIMEOUT_S)
        (log,) = pathlib.Path(logs).rglob("*.darshan")
        shutil.move(log, arguments.logs / name)
    return name


def make(arguments: argparse.Namespace) -> None:
    """Run all that is asked for, and write the truth beside the logs."""
    arguments.logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, (arguments.logs / "truth.jsonl").open("w") as truth:
        program = os.path.join(folder, "diagnosis_kinds")  # noqa: PTH118
        mpicc = shutil.which("mpicc", path=f"{pathlib.Path(sys.prefix) / 'bin'}:{os.environ['PATH']}") or "mpicc"
        subprocess.run([mpicc, "-O2", "-o", program, str(HERE / "diagnosis_kinds.c")], check=True)
        for kind in arguments.kinds or CAUSES:
            for ranks, size in ((ranks, size) for ranks in arguments.ranks for size in arguments.sizes):
                for dxt in (False, True):
                    name = run(program, kind, ranks, size, dxt, arguments)
                    row = {"log": name, "truth": kind, "ranks": ranks, "size": size}
                    truth.write(json.dumps(row) + "\n")
                    truth.flush()


def judge(folder: pathlib.Path) -> None:
    """Print the logs whose first sentence is wrong, and precision and recall for each cause."""
    rows = [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]
    right, tally = 0, collections.Counter()
    for row in rows:
        tables = convert([row["log"]], str(folder)).tables
        told = [one["document"] for one in diagnoses(tables, activity=activity_of(folder / row["log"], tables))]
        findings = [each for one in told for each in one["findings"] if each["confidence"] == "high"]
        first, wanted = (findings[0]["cause"] if findings else ""), CAUSES[row["truth"]]
        high = {each["cause"] for each in findings}
        tally.update([("said", cause) for cause in high] + [("right", cause) for cause in high & {wanted}])
        tally[("true", wanted)] += 1
        right += first == wanted
        if first != wanted or high - {wanted}:
            said = " | ".join(one["conclusion"] for one in told)
            print(f"{row['log']}: wanted {wanted or 'nothing'}, said {sorted(high) or 'nothing'}: {said}")
    print(f"first sentence right: {right} of {len(rows)}\n\n| cause | logs | precision | recall |\n|---|---|---|---|")
    for cause in sorted({cause for _, cause in tally} - {""}):
        found, said, true = tally[("right", cause)], tally[("said", cause)], tally[("true", cause)]
        precision = f"{found / said:.2f}" if said else "–"
        print(f"| `{cause}` | {true} | {precision} | {found / true if true else 0:.2f} |")


def main() -> None:
    """Run and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="default: all")
    parser.add_argument("--darshan", help="Darshan's runtime library for this MPI")
    parser.add_argument("--logs", type=pathlib.Path, default=pathlib.Path("diagnosis-corpus"), help="folder of logs")
    parser.add_argument("--path", help="folder of the data (default: that of temporary files)")
    parser.add_argument("--ranks", type=counts, default=[2, 4, 8])
    parser.add_argument("--sizes", type=counts, default=[1, 2])
    parser.add_argument("--check", action="store_true", help="judge the logs of the folder, run nothing")
    arguments = parser.parse_args()
    if unknown := set(arguments.kinds) - set(CAUSES):
        parser.error(f"{', '.join(sorted(unknown))}: there is no such kind; there are {', '.join(CAUSES)}")
    if not arguments.check:
        if not arguments.darshan:
            parser.error("--darshan: where Darshan's libdarshan.so is; or --check for logs that are there")
        make(arguments)
    judge(arguments.logs)


if __name__ == "__main__":
    main()
