"""Run the model-based test: ``python tests/model/run.py --histories 5000 --seed 1 --hints "*:mpiox_delegates=2"``.

Random histories of calls by several ranks on one launch of them, against a model of MPI's consistency rules; what fails
is shrunk and written to a file, from which ``--replay`` runs it again. See docs/project/testing.md.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from model.campaign import Failure, Report, campaign, replay, save
from model.history import MOST_RANKS, History
from model.oracle import Oracle
from model.pool import Pool
from model.settings import MORE, SETTINGS, Setting, random_setting
from support.launch import mpi_family


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--histories", type=int, default=5000, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="they follow from it")
    parser.add_argument("--ranks", type=int, default=MOST_RANKS, help="ranks of a history at most")
    parser.add_argument("--calls", type=int, default=45, help="drawn calls of a history at most")
    parser.add_argument("--hints", default="", help="MPIOX_HINTS of the launch")
    parser.add_argument("--env", action="append", default=[], help="NAME=VALUE for the ranks (may be repeated)")
    parser.add_argument("--setting", choices=SETTINGS | MORE, help="a launch of settings.py in place of these")
    parser.add_argument("--random-setting", type=int, help="delegates with hints drawn from this number")
    parser.add_argument("--native", action="store_true", help="the MPI library alone (it has its own ways)")
    parser.add_argument("--limit", type=float, default=60.0, help="four times as many seconds, and a history is stuck")
    parser.add_argument("--repeat", type=int, default=4, help="runs of each history while a failure is shrunk")
    parser.add_argument("--shrink-seconds", type=float, default=90.0, help="time for making a failure smaller")
    parser.add_argument("--failures", type=int, default=3, help="stop after so many")
    parser.add_argument("--folder", help="where the files of the histories are (default: memory)")
    parser.add_argument("--save", help="where failing histories are written (default: a temporary folder)")
    parser.add_argument("--replay", help="run the history in this file instead")
    parser.add_argument("--times", type=int, default=1, help="with --replay: so often")
    return parser.parse_args()


def setting_of(options: argparse.Namespace) -> Setting:
    """Return what the ranks are given."""
    if options.setting:
        return (SETTINGS | MORE)[options.setting]
    if options.random_setting is not None:
        return random_setting(options.random_setting)
    environment = dict(text.split("=", 1) for text in options.env)
    if options.native:
        environment["MPIOX_MODEL_NATIVE"] = "1"
    return Setting(hints=options.hints, environment=environment)


def tell(failure: Failure) -> None:
    """Print a failure."""
    history = failure.history
    print(f"{history['ranks']} ranks, files {history['files']}")
    for index, op in enumerate(history["ops"]):
        print(f"  {index}: {json.dumps(op)}")
    for problem in failure.problems[:6]:
        print(f"  PROBLEM {problem}")


def again(pool: Pool, history: History, times: int) -> int:
    """Run one history so often; the exit status."""
    Oracle(json.loads(json.dumps(history))).run(history["ops"])  # raises where an edited history is not legal
    seen = replay(pool, history, times)
    bad = [problems for problems in seen if problems]
    print(f"{len(bad)} of {times} runs failed")
    for problem in bad[0][:10] if bad else []:
        print(f"  PROBLEM {problem}")
    return int(bool(bad))


def main() -> int:
    """Command line."""
    options = arguments()
    if mpi_family() is None:
        print("this environment has no working MPI", file=sys.stderr)
        return 2

    def progress(report: Report) -> None:
        print(f"{report.elapsed_s:6.1f} s: {report.histories} histories, {len(report.failures)} failures", flush=True)

    pool = Pool(setting_of(options), limit_s=options.limit, parent=options.folder)
    with pool:
        if options.replay:
            return again(pool, json.loads(pathlib.Path(options.replay).read_text("utf-8")), options.times)
        report = campaign(
            pool,
            options.histories,
            options.seed,
            ranks=options.ranks,
            calls=options.calls,
            repeat=options.repeat,
            shrink_s=options.shrink_seconds,
            most_failures=options.failures,
            progress=progress,
        )
    print("Calls: " + ", ".join(f"{kind} {n}" for kind, n in sorted(report.kinds.items())))
    print("Statistics: " + ", ".join(f"{name} {n}" for name, n in sorted(pool.counts.items())))
    folder = pathlib.Path(options.save or tempfile.gettempdir())
    for i, failure in enumerate(report.failures):
        path = save(failure, folder, f"history-{options.seed}-{i}")
        print(f"FAILED {i}: again by --replay {path}")
        tell(failure)
    count = f"{report.histories} histories of {report.calls} calls, {pool.launches} launches"
    print(f"{len(report.failures)} failures in {count}")
    return int(bool(report.failures))


if __name__ == "__main__":
    sys.exit(main())
