"""Run the differential test: ``python tests/differential/run.py --cases 2000 --seed 1``.

Random programs of MPI-IO calls are made on a file with the library in charge and, as the reference, on another file
with the MPI library's own code (the hint mpiox_enable=false). A NumPy model of the file is the judge of both: where
native and model disagree, the case is counted and listed as a deviation of the MPI library. Exit status 1 when the
library under test differs. See docs/project/testing.md.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import fnmatch
import json
import pathlib
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from differential import generate, shrink, text
from differential.arms import Line, Seen, Setting, judge_raw, launch, raw, ready
from differential.features import features
from differential.ownership import may_be_native, missing_calls
from differential.state import Case
from differential.variants import (
    DELEGATE_HINTS,
    VARIANTS,
    delegate_hints,
    is_native_data,
    outcome,
    run_under,
    stored_as_several,
    unknown,
)
from mpiio_ext.common.near import near_names
from support import hosts, mounts
from support.launch import MEMORY, library_version, mpi_family, started_once_more

REFUSED = "refuses a legal view"
#: Cases from which on launches are long: under load, starting one takes as long as 25 cases.
MANY = 1_000
FATAL = ("crash", "hang")  # views go to the MPI library too, so it can end any case


@dataclass(slots=True, kw_only=True)
class Report:
    """What a run found."""

    setting: Setting
    cases: int = 0
    failures: dict[int, list[str]] = field(default_factory=dict)
    native: dict[int, list[str]] = field(default_factory=dict)
    passed_through: dict[int, list[str]] = field(default_factory=dict)
    unjudged: int = 0
    unrepeated: dict[int, list[str]] = field(default_factory=dict)
    features: collections.Counter[str] = field(default_factory=collections.Counter)
    stats: collections.Counter[str] = field(default_factory=collections.Counter)
    notes: set[str] = field(default_factory=set)
    elapsed_s: dict[str, float] = field(default_factory=lambda: collections.defaultdict(float))


@contextlib.contextmanager
def mounted(setting: Setting) -> Iterator[Setting]:
    """Give the block the setting with all files in one folder, which is mounted; raises as mounts.mount."""
    with (
        tempfile.TemporaryDirectory(prefix="mpiox_diff_", dir=setting.parent or MEMORY) as files,
        tempfile.TemporaryDirectory(prefix="mpiox_shown_") as at,
        mounts.mounted(pathlib.Path(files), pathlib.Path(at)),
    ):
        yield replace(setting, parent=files, shown=at)


def native_lines(case: Case, setting: Setting, *, hinted: bool) -> list[Line]:
    """Run a case with nothing but the MPI library, on this machine or where another launcher starts the ranks."""
    parent = None if setting.cluster else setting.parent
    return launch([case], case["ranks"], Setting(arms=("native",), limit_s=8.0, hinted=hinted, parent=parent))


def native_kinds(case: Case, setting: Setting) -> set[str]:
    """Run a case with nothing but the MPI library and the same hints; return the kinds of its problems."""
    lines = native_lines(case, setting, hinted=True)
    return {problem.split(":", 1)[0] for line in lines for problem in line["problems"]}


def native_notes(case: Case, setting: Setting) -> list[str]:
    """Run a case with nothing but the MPI library; return what it noted."""
    return [note for line in native_lines(case, setting, hinted=False) for note in line.get("notes", [])]


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
        their_notes = native.get("notes", []) if native else native_notes(case, report.setting)
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
        theirs |= native_kinds(case, report.setting)
    if any(op.get("rep", "native") != "native" for op in case["ops"]):
        # ROMIO's conversions spoil memory now and then: one good run of the reference calls proves nothing.
        theirs |= suspects & {"buffer", "file", "status", "size", "crash", "error"}
    if "atomic" in suspects:  # a race: that the reference calls got it right once proves nothing
        theirs.add("atomic")
    if theirs & set(FATAL):  # nobody can tell how native would have ended
        theirs |= {p.split(":", 1)[0] for p in problems}
    kept = [p for p in problems if not (p.split(":", 1)[0] in theirs and may_be_native(p, case))]
    if problems and not kept:
        report.passed_through[seed] = problems
        return
    problems = kept
    missing = missing_calls(case, stats)
    if missing and not any(p.startswith(("crash", "hang", "exit")) for p in problems):
        problems.append(missing)
    if problems and problems[0].startswith((*FATAL, "exit")) and not alone(case, report.setting):
        report.unrepeated[seed] = problems
    elif problems:
        report.failures[seed] = problems


def alone(case: Case, setting: Setting) -> bool:
    """Tell whether a case that ended its launch ends badly again in a launch of its own.

    If not, calls of the MPI library in the cases before it have probably destroyed memory, as ROMIO's do now and then.
    """
    started_once_more(f"case {case['seed']} has ended its launch, maybe where ROMIO had destroyed memory")
    return any(line["problems"] for line in launch([case], case["ranks"], replace(setting, arms=("ours",))))


def chunks(seeds: list[int], most: int) -> dict[int, list[list[int]]]:
    """Group seeds by rank count, in lists short enough for one launch."""
    groups: dict[int, list[int]] = collections.defaultdict(list)
    for seed in seeds:
        groups[generate.ranks_of(seed)].append(seed)
    return {ranks: [group[i : i + most] for i in range(0, len(group), most)] for ranks, group in sorted(groups.items())}


def run(
    seeds: list[int],
    setting: Setting,
    *,
    only: frozenset[str] | None = None,
    progress: bool = False,
    deadline_s: float | None = None,
    max_failures: int = 50,
    shuffle: bool = False,
    count_features: bool = False,
    plain: bool = False,
    strict: bool = False,
) -> Report:
    """Run the cases of all seeds. After ``deadline_s`` seconds no new launch is started.

    ``shuffle`` runs launches of all rank counts in turn, short ones unless there are thousands of cases, so that a run
    that is cut short has seen them all. While one launch runs, the cases of the next are drawn and those of the last
    compared. ``strict``: see generate.generate.
    """
    report, started_s = Report(setting=setting), time.monotonic()
    most = 25 if shuffle and len(seeds) < MANY else 100  # cases of one launch
    plan = [(ranks, group) for ranks, groups in chunks(seeds, most).items() for group in groups]
    if shuffle:
        random.Random(seeds[0]).shuffle(plan)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        last: tuple[list[Case], concurrent.futures.Future[tuple[Seen, list[Line]]]] | None = None
        for ranks, group in [*plan, (0, [])]:
            late = deadline_s is not None and time.monotonic() - started_s > deadline_s
            stop = late or not group or len(report.failures) >= max_failures
            cases = [] if stop else [generate.generate(seed, only, strict=strict) for seed in group]
            cases = [generate.plainer(case) for case in cases] if plain else cases
            future = pool.submit(raw, ready(cases, setting), ranks, setting) if cases else None
            if last is not None:
                enter(last[0], last[1].result(), report, count_features=count_features)
            last = (cases, future) if future else None
            if progress and report.cases:
                print(
                    f"{time.monotonic() - started_s:6.1f} s: {report.cases} cases, {len(report.failures)} failures, "
                    f"{len(report.native)} native deviations",
                    file=sys.stderr,
                    flush=True,
                )
            if stop:
                break
    return report


def enter(cases: list[Case], found: tuple[Seen, list[Line]], report: Report, *, count_features: bool) -> None:
    """Compare the cases of one launch and enter them in the report."""
    by_id: dict[int, dict[str, Line]] = collections.defaultdict(dict)
    for line in judge_raw(cases, *found):
        by_id[line["id"]][line["arm"]] = line
    for case in cases:
        if by_id.get(case["seed"]):
            report.cases += 1
            if count_features:
                report.features.update(features(case))
            judge(case, by_id[case["seed"]], report)


def fails_in(arm: str, setting: Setting) -> shrink.Fails:
    """Return the test that shrinking uses: which of these cases still fail in ``arm``."""
    alone = replace(setting, arms=(arm,))

    def fails(cases: list[Case]) -> list[bool]:
        bad: set[int] = set()
        for ranks in sorted({case["ranks"] for case in cases}):
            group = ready([case for case in cases if case["ranks"] == ranks], setting)
            by_id = {case["id"]: case for case in group}
            for line in launch(group, ranks, alone):
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
        for kind in sorted({problem.split(":", 1)[0] for problem in texts}):
            found[kind].append(seed)
    return found


def gist(problem: str) -> str:
    """Return what matters of the output of a launch that ended badly."""
    kind, _, text = problem.partition(": ")
    if kind not in ("crash", "hang", "exit") or len(text) < 400:
        return problem[:1500]
    telling = re.compile(
        r"WATCHDOG|Fatal|[Aa]ssert|Abort|rror|signal|calls.py|Out of memory|exit status|timed out|stood at"
    )
    lines = list(dict.fromkeys(line.strip()[:160] for line in text.splitlines() if telling.search(line)))
    return f"{kind}: " + "\n        ".join(lines[:16])


def tell(title: str, problems: list[str]) -> None:
    """Print the problems of one case."""
    print(title)
    for problem in problems[:6]:
        print(f"    {gist(problem)}")


def show(report: Report, setting: Setting, *, verbose: bool) -> None:
    """Print the report."""
    print(f"{report.cases} cases on {library_version().splitlines()[0][:60]}")
    if report.features:
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
        for seed, problems in sorted(report.native.items()) if verbose else []:
            tell(f"native seed {seed} ({generate.ranks_of(seed)} ranks)", problems)
    if "ours" in setting.arms:
        passed = report.passed_through
        print(f"Passed through to the MPI library and equal to it: {len(passed)} cases, seeds {sorted(passed)[:12]}")
        for seed, problems in sorted(passed.items()) if verbose else []:
            tell(f"passed through seed {seed} ({generate.ranks_of(seed)} ranks)", problems)
        print(f"Not judged because the MPI library has other type bounds or refuses a view: {report.unjudged} cases")
        print(f"Ended the launch, but not when run alone: {len(report.unrepeated)} cases")
        for seed, problems in sorted(report.unrepeated.items()):
            tell(f"not repeated: seed {seed} ({generate.ranks_of(seed)} ranks)", problems)
        for seed, problems in sorted(report.failures.items()):
            tell(f"FAILED seed {seed} ({generate.ranks_of(seed)} ranks)", problems)
        print(f"{len(report.failures)} of {report.cases} cases failed")


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--cases", type=int, default=2000, help="number of random cases")
    parser.add_argument("--seed", type=int, default=1, help="first seed; the cases have the seeds SEED, SEED+1, ...")
    parser.add_argument("--case", type=int, action="append", help="run the case of this seed only (may be repeated)")
    parser.add_argument("--file", help="run the cases of this file, a line each or .case, in one launch")
    parser.add_argument(
        "--text", metavar="CASE", help="run a case natively, with the library, through delegates: FILE:NAME"
    )
    parser.add_argument("--last", action="store_true", help="as --text, the case that failed last in test_cases.py")
    parser.add_argument(
        "--variant",
        action="append",
        default=[],
        metavar="NAME",
        help=f"with --text, also: {', '.join(VARIANTS)}, or '*'",
    )
    parser.add_argument(
        "--only", type=generate.families_of, help=f"programs of these families: {','.join(generate.FAMILIES)}"
    )
    parser.add_argument(
        "--owned", type=generate.families_of, help="families that must be the library's own (default: ownership.py)"
    )
    parser.add_argument(
        "--native-only", action="store_true", help="check the MPI library's own calls against the model"
    )
    parser.add_argument("--no-native", action="store_true", help="do not make the reference calls")
    parser.add_argument("--shrink", action="store_true", help="simplify failing cases (the first three)")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds after which a case counts as stuck")
    parser.add_argument("--folder", help="where the files are written (default: memory)")
    parser.add_argument("--ranks", type=int, help="only cases of this many ranks")
    parser.add_argument("--hosts", type=int, default=0, help="ranks on so many hosts: docs/project/clusters.md")
    parser.add_argument("--share", choices=hosts.KINDS, help="with --hosts: the files lie in such a shared folder")
    parser.add_argument(
        "--strict", action="store_true", help="only what MPI defines without coherent caches (default with --share)"
    )
    parser.add_argument("--ranks-per-node", type=int, help="set MPIOX_RANKS_PER_NODE: pretended nodes for every case")
    parser.add_argument("--delegates", type=int, default=0, help="ours goes through so many I/O delegates")
    parser.add_argument(
        "--delegate-hints", default=DELEGATE_HINTS, help="with --delegates: their hints, separated by colons"
    )
    parser.add_argument(
        "--subfiles",
        type=int,
        nargs=2,
        metavar=("COUNT", "UNIT"),
        help="ours stores files as so many, in such units; they are read by their format, merged and through a mount",
    )
    parser.add_argument("--features", action="store_true", help="print how many cases used which feature")
    parser.add_argument("--verbose", action="store_true", help="print how native differs from the model, too")
    parser.add_argument("--plain", action="store_true", help="buffers of plain bytes in place of memory types")
    parser.add_argument("--describe", action="store_true", help="print the cases as text instead of running them")
    parser.add_argument("--shuffle", action="store_true", help="short launches of all rank counts in turn")
    return parser.parse_args()


def listed(path: str) -> list[Case]:
    """Return the cases of a file: ``.case``, or a line each, as text or as JSON."""
    if path.endswith(".case"):
        return [entry.case | {"id": i} for i, entry in enumerate(text.read_file(pathlib.Path(path)))]
    lines = [line for line in pathlib.Path(path).read_text("utf-8").splitlines() if line.strip()]
    return [
        json.loads(line) if line[0] == "{" else text.read(line, path, number).case | {"id": number}
        for number, line in enumerate(lines, 1)
    ]


def run_listed(path: str, setting: Setting) -> int:
    """Run the cases of a file; the exit status."""
    cases, bad = listed(path), False
    for line in launch(ready(cases, setting), max(case["ranks"] for case in cases), setting):
        print(json.dumps(line, indent=1))
        bad = bad or (line["arm"] == "ours" and bool(line["problems"]))
    return int(bad)


def entry_of(words: str) -> text.Entry:
    """Return the entry that ``--text`` names: the text of a case, or FILE:NAME."""
    file, _, name = words.partition(":")
    if not file.endswith(".case"):
        return text.read(words)
    path = pathlib.Path(file) if pathlib.Path(file).exists() else text.FOLDER / file
    if not path.exists():
        raise text.CaseError(f"{file}: there is no such file, nor in {text.FOLDER}")
    entries = {entry.name: entry for entry in text.read_file(path)}
    if name.strip() not in entries:
        near = "".join(f", did you mean {each!r}?" for each in near_names(name.strip(), entries))
        raise text.CaseError(f"{path}: no case has the name {name.strip()!r}{near}")
    return entries[name.strip()]


def run_text(words: str, given: list[str]) -> int:
    """Run one case under variants and print for each how it ended; the exit status."""
    entry, family, bad = entry_of(words), mpi_family() or "", False
    if names := [*unknown(entry), *(each for each in given if not fnmatch.filter(VARIANTS, each))]:
        raise text.CaseError(f"no variant has the name {' or '.join(names)}: {', '.join(VARIANTS)}")
    wanted = [name for each in given for name in fnmatch.filter(VARIANTS, each)]
    names = list(dict.fromkeys(["native", "default", "delegates", *wanted]))
    results = run_under([entry], names).problems
    for name in names:
        if (entry.name, name) not in results:
            print(f"{name}: does not run there")
            continue
        ended, expected = outcome(entry, name, family, results[entry.name, name])
        bad = bad or not expected
        print(f"{name}: {ended}")
        if name == "native" and results[entry.name, name] and not expected:
            print(f"  if the MPI library is wrong, declare it: | except native({family}): REASON")
    return int(bad)


def main() -> int:
    """Command line."""
    options = arguments()
    if mpi_family() is None:
        print("this environment has no working MPI", file=sys.stderr)
        return 2
    if options.text or options.last:
        try:
            return run_text(*((options.text, options.variant) if options.text else text.last_failed()))
        except text.CaseError as error:
            print(error, file=sys.stderr)
            return 2
    where = Setting(arms=(), parent=options.folder)
    if not options.hosts:
        with mounted(where) if options.subfiles else contextlib.nullcontext(where) as place:
            return carry_out(options, place)
    shares = [options.share] if options.share else []
    with hosts.cluster(options.hosts, shares=shares) as cluster:
        parent = str(cluster.of.shares()[options.share]) if options.share else options.folder
        return carry_out(options, Setting(arms=(), parent=parent, cluster=cluster))


def carry_out(options: argparse.Namespace, where: Setting) -> int:
    """Run what the command line asks for, where it says; the exit status."""
    arms = ("native",) if options.native_only else ("ours",) if options.no_native else ("ours", "native")
    env: tuple[tuple[str, str], ...] = (
        (("MPIOX_RANKS_PER_NODE", str(options.ranks_per_node)),) if options.ranks_per_node else ()
    )
    if options.delegates:
        env += (("MPIOX_HINTS", delegate_hints(options.delegates, options.delegate_hints)),)
    setting = replace(where, arms=arms, limit_s=options.limit, env=env, owned=options.owned)
    if options.subfiles:
        setting = stored_as_several(setting, *options.subfiles)
    if options.file:
        return run_listed(options.file, setting)
    seeds = options.case or list(range(options.seed, options.seed + options.cases))
    if options.subfiles:
        seeds = [seed for seed in seeds if is_native_data(generate.generate(seed, options.only, strict=options.strict))]
    if options.ranks:
        seeds = [seed for seed in seeds if generate.ranks_of(seed) == options.ranks]
    if options.describe:
        for seed in seeds:
            print(text.tell(generate.generate(seed, options.only, strict=options.strict)))
        return 0
    print(f"seeds {seeds[0]} .. {seeds[-1]}, arms {', '.join(arms)}", flush=True)
    report = run(
        seeds,
        setting,
        only=options.only,
        progress=True,
        shuffle=options.shuffle,
        count_features=options.features,
        plain=options.plain,
        strict=options.strict or bool(options.share),
    )
    show(report, setting, verbose=options.verbose)
    failing = report.native if options.native_only else report.failures
    if options.shrink:
        for seed in sorted(failing)[:3]:
            drawn = generate.generate(seed, options.only, strict=options.strict or bool(options.share))
            small = shrink.shrink(drawn, fails_in(arms[0], setting))
            print(
                f"SHRUNK {seed}: run with --text, or with --file after saving this line\n{text.tell(small)}", flush=True
            )
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
