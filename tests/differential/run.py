"""Run the differential test: ``python tests/differential/run.py --cases 2000 --seed 1``.

Random programs of MPI-IO calls are made on a file with the library in charge and, as the reference, on another file
with the MPI library's own code (the hint mpiox_enable=false). A NumPy model of the file is the judge of both: where
native and model disagree, the case is counted and listed as a deviation of the MPI library. Exit status 1 when the
library under test differs. See docs/testing.md.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from differential import generate, shrink, simulate, typetree
from differential.simulate import Case
from support.launch import LaunchError, library_version, mpi_family, python_run

WORKER = pathlib.Path(__file__).resolve().parent / "worker.py"
Line = dict[str, Any]
REFUSED = "refuses a legal view"
FATAL = ("crash", "hang")  # views go to the MPI library too, so it can end any case


@dataclass(slots=True, kw_only=True)
class Report:
    """What a run found."""

    cases: int = 0
    failures: dict[int, list[str]] = field(default_factory=dict)
    native: dict[int, list[str]] = field(default_factory=dict)
    passed_through: int = 0
    unjudged: int = 0
    features: collections.Counter[str] = field(default_factory=collections.Counter)
    stats: collections.Counter[str] = field(default_factory=collections.Counter)
    notes: set[str] = field(default_factory=set)
    elapsed_s: dict[str, float] = field(default_factory=lambda: collections.defaultdict(float))


def work_folder(parent: str | None) -> str:
    """Return a new folder in memory where there is one (the test is about bytes, not about disks)."""
    shm = "/dev/shm"
    return tempfile.mkdtemp(prefix="mpiox_diff_", dir=parent or (shm if os.access(shm, os.W_OK) else None))


def launch(
    cases: list[Case] | None,
    seeds: list[int] | None,
    ranks: int,
    arms: list[str],
    limit_s: float,
    parent: str | None,
    *,
    hinted: bool = False,
) -> list[Line]:
    """Run cases (or the cases of seeds) on ``ranks`` ranks; relaunch after a crash or hang. Returns result lines."""
    lines: list[Line] = []
    todo: list[Any] = list(cases if cases is not None else seeds or [])
    while todo:
        folder = work_folder(parent)
        try:
            job = {"folder": folder, "out": f"{folder}/out", "arms": arms, "limit_s": limit_s, "hinted": hinted}
            job["cases" if cases is not None else "seeds"] = todo
            path = pathlib.Path(folder, "job.json")
            path.write_text(json.dumps(job), encoding="utf-8")
            done = python_run([str(WORKER), str(path)], ranks, timeout_s=120 + 3 * len(todo) + limit_s, check=False)
            out = pathlib.Path(folder, "out")
            found = [json.loads(text) for text in out.read_text("utf-8").splitlines()] if out.exists() else []
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        lines += [line for line in found if "problems" in line]
        if found and "end" in found[-1] and done.returncode == 0:
            return lines
        started = [line for line in found if "start" in line]
        if not started:
            raise LaunchError(done.describe())
        last = started[-1]
        if "end" in found[-1]:  # everything was done, then the job ended badly: blame the last case
            lines.append(last | {"problems": [f"exit: {done.describe()}"], "id": last["start"]})
            return lines
        state = "hang" if "WATCHDOG" in done.stderr or done.timed_out else "crash"
        lines.append(last | {"problems": [f"{state}: {done.describe()}"], "id": last["start"]})
        position = next(
            i
            for i, item in enumerate(todo)
            if (item if isinstance(item, int) else item.get("id", item["seed"])) == last["start"]
        )
        todo = todo[position + 1 :]
    return lines


def native_kinds(case: Case, limit_s: float = 8.0) -> set[str]:
    """Run a case with nothing but the MPI library and the same hints; return the kinds of its problems."""
    return {
        problem.split(":", 1)[0]
        for line in launch([case], None, case["ranks"], ["native"], limit_s, None, hinted=True)
        for problem in line["problems"]
    }


def native_notes(case: Case, limit_s: float = 8.0) -> list[str]:
    """Run a case with nothing but the MPI library; return what it noted."""
    return [
        note
        for line in launch([case], None, case["ranks"], ["native"], limit_s, None)
        for note in line.get("notes", [])
    ]


def judge(case: Case, lines: dict[str, Line], report: Report) -> None:
    """Enter the results of one case in the report."""
    seed = case["seed"]
    ours, native = lines.get("ours"), lines.get("native")
    for line in lines.values():
        report.notes.update(line.get("notes", []))
        report.elapsed_s[line["arm"]] += line.get("elapsed_s", 0)
    if native and native["problems"]:
        report.native[seed] = native["problems"]
    if not ours:
        return
    notes = ours.get("notes", [])
    if any(REFUSED in note for note in notes):
        their_notes = native.get("notes", []) if native else native_notes(case)
        if not any(REFUSED in note for note in their_notes):
            report.failures[seed] = notes
    if notes:  # the MPI library computes other bounds than the model, or has no such view
        report.unjudged += 1
        return
    stats = ours.get("stats", {})
    report.stats.update({name: value for name, value in stats.items() if isinstance(value, int)})
    problems = list(ours["problems"])
    theirs = {p.split(":", 1)[0] for p in native["problems"]} if native else set()
    suspects = {p.split(":", 1)[0] for p in problems if may_be_native(p, case)}
    if suspects - theirs:  # the reference calls were made without hints, or not at all
        theirs |= native_kinds(case)
    if theirs & set(FATAL):  # nobody can tell how native would have ended
        theirs |= {p.split(":", 1)[0] for p in problems}
    kept = [p for p in problems if not (p.split(":", 1)[0] in theirs and may_be_native(p, case))]
    if problems and not kept:
        report.passed_through += 1
        return
    problems = kept
    missing = missing_calls(case, stats)
    if missing and not any(p.startswith(("crash", "hang", "exit")) for p in problems):
        problems.append(missing)
    if problems:
        report.failures[seed] = problems


def may_be_native(problem: str, case: Case) -> bool:
    """Tell whether a problem may come from what the library hands to the MPI library; it does if native has it too.

    Views and sizes are set on the MPI library's handle as well, so it can refuse or end any case; what comes after a
    call that it carried out (wrongly) is its doing as well.
    """
    if problem.startswith("error: contiguous"):
        return False
    if problem.startswith(FATAL):
        return True
    foreign = [
        op["op"] != "seek" and not own for op, own in zip(case["ops"], simulate.managed_calls(case), strict=True)
    ]
    views = [op["op"] in ("view", "sync") for op in case["ops"]]
    if ": call " not in problem:
        last = len(foreign)
    else:
        last = int(problem.split(": call ", 1)[1].split()[0]) + 1
        if problem.startswith("error") and foreign[last - 1]:
            return True
    return any(f and not v for f, v in zip(foreign[:last], views[:last], strict=True))


def expected_calls(case: Case) -> tuple[int, int]:
    """Return how many collective writes and reads the library must have taken over."""
    taken = [op["op"] for op, own in zip(case["ops"], simulate.managed_calls(case), strict=True) if own]
    return taken.count("write"), taken.count("read")


def missing_calls(case: Case, stats: dict[str, int]) -> str | None:
    """Return a complaint when the library did not take over what it must."""
    writes, reads = expected_calls(case)
    got = stats.get("collective_writes", 0), stats.get("collective_reads", 0)
    if got[0] < writes or got[1] < reads:
        return (
            f"not managed: {got[0]} collective writes and {got[1]} reads were taken over, expected {writes} and {reads}"
        )
    return None


def features(case: Case) -> set[str]:
    """Return the names of what a case exercises."""
    found = {f"ranks {case['ranks']}", f"comm {case['comm']}", f"fill {case['fill']}"}
    found |= {f"strategy {name}" for name in case["strategies"]}
    found |= {f"{name}={value}" if name.startswith("mpiox") else name for name, value in case["hints"].items()}
    per_node = int(case["hints"].get("mpiox_ranks_per_node", 0))
    found.add(f"nodes {-(-case['ranks'] // per_node) if per_node else 1}")
    found |= {name for name in ("lax", "big", "readonly") if case[name]}
    if case["initial"] > 0:
        found.add("file existed")
    simulation = simulate.Simulation(case)
    for index, op in enumerate(case["ops"]):
        expected = simulation.step(index, op)
        found.add(f"call {op['op']} {op.get('how', '')}".strip())
        if op["op"] == "view":
            found |= {f"file {name}" for tree in op["ftype"] for name in typetree.constructors(tree)}
            if op["etype"][0] != "named":
                found.add("etype derived")
        if expected is not None:
            found |= {f"memory {name}" for tree in op["mem"] for name in typetree.constructors(tree)}
            if any(op["bottom"]):
                found.add("memory MPI_BOTTOM")
            if any(e.nbytes < e.requested for e in expected):
                found.add("read past end")
            if any(e.requested == 0 for e in expected):
                found.add("zero-length ranks")
    return found


def chunks(seeds: list[int], most: int) -> dict[int, list[list[int]]]:
    """Group seeds by rank count, in lists short enough for one launch."""
    groups: dict[int, list[int]] = collections.defaultdict(list)
    for seed in seeds:
        groups[generate.ranks_of(seed)].append(seed)
    return {ranks: [group[i : i + most] for i in range(0, len(group), most)] for ranks, group in sorted(groups.items())}


def run(
    seeds: list[int],
    arms: list[str],
    *,
    limit_s: float = 20.0,
    parent: str | None = None,
    progress: bool = False,
    deadline_s: float | None = None,
    max_failures: int = 50,
    shuffle: bool = False,
) -> Report:
    """Run the cases of all seeds. After ``deadline_s`` seconds no new launch is started.

    ``shuffle`` runs short launches of all rank counts in turn, so that a run that is cut short has seen them all.
    """
    report, started_s = Report(), time.monotonic()
    plan = [(ranks, group) for ranks, groups in chunks(seeds, 25 if shuffle else 200).items() for group in groups]
    if shuffle:
        random.Random(seeds[0]).shuffle(plan)
    for ranks, group in plan:
        if deadline_s is not None and time.monotonic() - started_s > deadline_s:
            break
        if len(report.failures) >= max_failures:
            break
        by_seed: dict[int, dict[str, Line]] = collections.defaultdict(dict)
        for line in launch(None, group, ranks, arms, limit_s, parent):
            by_seed[line["seed"]][line["arm"]] = line
        for seed, lines in by_seed.items():
            case = generate.generate(seed)
            report.cases += 1
            report.features.update(features(case))
            judge(case, lines, report)
        if progress:
            print(
                f"{time.monotonic() - started_s:6.1f} s  {ranks} ranks: {report.cases} cases, "
                f"{len(report.failures)} failures, {len(report.native)} native deviations",
                file=sys.stderr,
                flush=True,
            )
    return report


def fails_in(arm: str, limit_s: float, parent: str | None) -> shrink.Fails:
    """Return the test that shrinking uses: which of these cases still fail in ``arm``."""
    arms = [arm]

    def fails(cases: list[Case]) -> list[bool]:
        bad: set[int] = set()
        for ranks in sorted({case["ranks"] for case in cases}):
            group = [case for case in cases if case["ranks"] == ranks]
            by_id = {case["id"]: case for case in group}
            for line in launch(group, None, ranks, arms, limit_s, parent):
                found = list(line["problems"])
                if arm == "ours" and not found and (missing := missing_calls(by_id[line["id"]], line["stats"])):
                    found.append(missing)
                if found:
                    bad.add(line["id"])
        return [case["id"] in bad for case in cases]

    return fails


def kinds(problems: dict[int, list[str]]) -> dict[str, list[int]]:
    """Return kind of problem -> seeds."""
    found: dict[str, list[int]] = collections.defaultdict(list)
    for seed, texts in problems.items():
        for kind in sorted({text.split(":", 1)[0] for text in texts}):
            found[kind].append(seed)
    return found


def show(report: Report, arms: list[str], *, verbose: bool) -> None:
    """Print the report."""
    print(f"{report.cases} cases on {library_version().splitlines()[0][:60]}")
    if verbose:
        print("Cases by feature:")
        for name, count in sorted(report.features.items()):
            print(f"  {count:6d}  {name}")
    if report.stats:
        print("Statistics of rank 0, summed: " + ", ".join(f"{k} {v}" for k, v in sorted(report.stats.items())))
    for note in sorted(report.notes)[:20]:
        print(f"NOTE {note}")
    print("Time in calls: " + ", ".join(f"{arm} {seconds:.1f} s" for arm, seconds in sorted(report.elapsed_s.items())))
    if report.native:
        print(f"Deviations of the MPI library itself from the model: {len(report.native)} cases")
        for kind, seeds in kinds(report.native).items():
            print(f"  {kind}: {len(seeds)} cases, seeds {seeds[:12]}")
    if "ours" in arms:
        print(f"Passed through to the MPI library and equal to it: {report.passed_through} cases")
        print(f"Not judged because the MPI library has other type bounds or refuses a view: {report.unjudged} cases")
        for seed, problems in sorted(report.failures.items()):
            print(f"FAILED seed {seed} ({generate.ranks_of(seed)} ranks)")
            for problem in problems[:6]:
                print(f"    {problem if len(problem) < 300 else problem[:100] + ' [...] ' + problem[-1500:]}")
        print(f"{len(report.failures)} of {report.cases} cases failed")


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--cases", type=int, default=2000, help="number of random cases")
    parser.add_argument("--seed", type=int, default=1, help="first seed; the cases have the seeds SEED, SEED+1, ...")
    parser.add_argument("--case", type=int, action="append", help="run the case of this seed only (may be repeated)")
    parser.add_argument("--file", help="run the cases described in this file, one JSON line each, in one launch")
    parser.add_argument(
        "--native-only", action="store_true", help="check the MPI library's own calls against the model"
    )
    parser.add_argument("--no-native", action="store_true", help="do not make the reference calls")
    parser.add_argument("--shrink", action="store_true", help="simplify failing cases (the first three)")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds after which a case counts as stuck")
    parser.add_argument("--folder", help="where the files are written (default: memory)")
    parser.add_argument("--ranks", type=int, help="only cases of this many ranks")
    parser.add_argument("--features", action="store_true", help="print how many cases used which feature")
    parser.add_argument("--describe", action="store_true", help="print the cases as JSON instead of running them")
    options = parser.parse_args()
    if mpi_family() is None:
        print("this environment has no working MPI", file=sys.stderr)
        return 2
    arms = ["native"] if options.native_only else ["ours"] if options.no_native else ["ours", "native"]
    if options.file:
        listed = [
            json.loads(text) for text in pathlib.Path(options.file).read_text("utf-8").splitlines() if text.strip()
        ]
        bad = False
        for line in launch(listed, None, max(case["ranks"] for case in listed), arms, options.limit, options.folder):
            print(json.dumps(line, indent=1))
            bad = bad or (line["arm"] == "ours" and bool(line["problems"]))
        return int(bad)
    seeds = options.case or list(range(options.seed, options.seed + options.cases))
    if options.ranks:
        seeds = [seed for seed in seeds if generate.ranks_of(seed) == options.ranks]
    if options.describe:
        for seed in seeds:
            print(json.dumps(generate.generate(seed)))
        return 0
    print(f"seeds {seeds[0]} .. {seeds[-1]}, arms {', '.join(arms)}", flush=True)
    report = run(seeds, arms, limit_s=options.limit, parent=options.folder, progress=True)
    show(report, arms, verbose=options.features or len(seeds) > 100)
    failing = report.native if options.native_only else report.failures
    if options.shrink:
        for seed in sorted(failing)[:3]:
            small = shrink.shrink(generate.generate(seed), fails_in(arms[0], options.limit, options.folder))
            print(f"SHRUNK {seed}: run with --file after saving this line\n{json.dumps(small)}", flush=True)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
