"""How close PIONEER's synthetic workloads come to programs: synthesized, carried out, and traced again.

Kernels of the bench are traced on 4 ranks by the tracer of this project and by ltrace (where it is installed), CM1
comes from a DFTracer trace (where it is). Three parts, as Markdown and in OUTPUT/fidelity.json:

table     every mode of the synthesis against each path: the worst of 20 seeds, and controls that must fail;
loop      a sampled path carried out by N/4, N and 4 N ranks under the tracer, N as many as were traced; the path of
          that trace against what so many ranks can do of the original path. Metrics of time are judged where N ranks
          keep the path's pace. Spoilt paths carried out by N ranks, which must fail;
makespan  program and sampled workload in turn, 10 pairs: each workload is made of the run before it. The median ratio
          is within 5 %, or the workload's median among the program's own runs without the fastest and the slowest.
          The same of the arrival rates: the workload's median distance from its program is within the limit, or no
          larger than that of the program from its own run before.

    build/openmpi/venv/bin/python benchmarks/pioneer_fidelity.py --output /tmp/fidelity

10 to 15 minutes on two quiet cores; what does not begin within --budget seconds is left out and said to be. A program
that fails is named and does not end the others; OUTPUT/fidelity.json is written again behind each result. Exit status 1
if a metric is beyond its limit, a control within all, a program has failed or anything was left out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pioneer_programs as programs
from pioneer_programs import ProgramError, Traced

from mpiio_ext.common.files import write_whole
from mpiio_ext.pioneer.compare import LIMITS, compare_paths
from mpiio_ext.pioneer.compare.metrics import touched_of_classes
from mpiio_ext.pioneer.compare.touched import touched_by_ranks
from mpiio_ext.pioneer.engine import comparable_path, expected_path
from mpiio_ext.pioneer.fidelity import CONTROLS, Row, fidelity, to_json, to_markdown
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.synthesis import synthesize

PARTS = ("table", "loop", "makespan")
#: Single runs of kernels last tenths of a second, with more ranks than cores: what they take is judged in pairs.
IN_PAIRS = ("arrival", "makespan")
#: KS of the slack times judges microseconds; of a run it is slack_us that counts.
NOT_OF_RUNS = ("slack",)
OF_PACE = ("slack", "slack_us", "arrival", "makespan")
#: With another number of ranks calls take another time; where they are more than were traced, and than there are cores,
#: ranks wait for a core longer than for their slack times.
OF_SCALE = ("slack", "arrival", "makespan")
SHARE = 0.05


@dataclass(slots=True)
class Progress:
    """Tells what is done, and whether there is time for more.

    Attributes
    ----------
    budget_s : after which nothing new is begun.
    left_out : what was not begun, or has failed, with the reason.
    """

    budget_s: float
    left_out: dict[str, str] = field(default_factory=dict)
    _begun: float = field(default_factory=time.monotonic)

    def say(self, what: str) -> None:
        """Print what is done now."""
        print(f"[{time.monotonic() - self._begun:5.0f} s] {what}", file=sys.stderr, flush=True)

    def attempt(self, what: str, work: Callable[[], Any]) -> Any:
        """Return what `work` returns; None where there is no time for it or it fails, which is noted."""
        if time.monotonic() - self._begun > self.budget_s:
            self.left_out[what] = f"the budget of {self.budget_s:.0f} s was used up"
            return None
        self.say(what)
        try:
            return work()
        except (ProgramError, OSError, ValueError) as error:
            self.left_out[what] = str(error)
            self.say(f"{what}: FAILED: {error}")
            return None


# ---- traces ----------------------------------------------------------------------------------------------------------


def traces_of_programs(output: Path, only: Sequence[str], trace: Path, progress: Progress) -> dict[str, Traced]:
    """Trace all kernels, and read CM1's trace; those of `only`, if there are any."""
    work: dict[str, Callable[[], Traced]] = {}
    for name in programs.KERNELS:
        work[name] = lambda name=name: programs.traced(name, output)  # type: ignore[misc]
    for name in programs.UNDER_LTRACE if shutil.which("ltrace") else ():
        work[f"{name} (ltrace)"] = lambda name=name: programs.under_ltrace(name, output)  # type: ignore[misc]
    if trace.is_dir():
        work["cm1"] = lambda: programs.cm1(trace)
    found = {}
    for name, read in work.items():
        if not only or name in only:
            one = progress.attempt(f"trace: {name}", read)
            if one is not None:
                found[name] = one
                one.path.save(output / f"{name.replace(' ', '_')}.parquet")
    return found


# ---- the closed loop -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A synthetic path, carried out and traced again.

    Attributes
    ----------
    name, ranks : of the path; that have carried it out.
    spoilt : name of the control; "": none.
    paced : slack times were kept.
    values : of all metrics.
    judged : metrics whose limits count.
    said : what the replay has said of its slack times, "" where there are none.
    of_ranks : the metric `touched` of every rank, where as many were traced; not judged, since two representatives do
        not tell what ranks whose offsets follow no rule touch.
    """

    name: str
    ranks: int
    spoilt: str
    paced: bool
    values: Mapping[str, float]
    judged: Sequence[str]
    said: str
    of_ranks: Mapping[str, float] = field(default_factory=dict)

    @property
    def failed(self) -> list[str]:
        """Metrics that are judged and beyond their limits."""
        return [name for name in self.judged if self.values[name] > LIMITS[name.rpartition(".")[2]]]


def carried_out(
    name: str, traced: Traced, synthetic: WorkloadPath, place: Path, ranks: int, *, paced: bool, spoilt: str = "",
) -> Loop:  # fmt: skip
    """Carry a path out, and compare its trace with the original."""
    original = traced.path
    planned_s = sum(float(np.nansum(synthetic.table[f"{kind}_0"].to_numpy())) for kind in ("slack", "duration")) / 1e9
    again, said = programs.replayed(synthetic, place, ranks, of_bench=name != "cm1", time_scale=float(paced),
                                    seconds=120 + 4 * planned_s * paced)  # fmt: skip
    values = compare_paths(expected_path(original, ranks), comparable_path(again.path, original, ranks)).values
    same = ranks == original.info.ranks
    crowded = ranks > max(original.info.ranks, len(os.sched_getaffinity(0)))
    of_one_run = NOT_OF_RUNS if name == "cm1" or spoilt else (*NOT_OF_RUNS, *IN_PAIRS)
    beside = OF_PACE if not paced or crowded else of_one_run if same else OF_SCALE
    every = touched_of_classes(touched_by_ranks(traced.tables), touched_by_ranks(again.tables), ()) if same else {}
    late = next((line.strip() for line in said.splitlines() if "slack times ended" in line), "")
    return Loop(name=name, ranks=ranks, spoilt=spoilt, paced=paced, values=dict(values), said=late, of_ranks=every,
                judged=tuple(item for item in values if item not in beside))  # fmt: skip


def closed_loop(found: Mapping[str, Traced], output: Path, progress: Progress) -> Iterator[Loop]:
    """Carry a sampled path of each program out by fewer, as many and more ranks, and compare what was traced.

    Replays of a long run keep its pace where there are as many ranks as were traced; the others are as fast as can be.
    """
    for name, one in found.items():
        ranks = one.path.info.ranks
        synthetic = synthesize(one.path, mode="sampled", seed=1)
        for count in (max(1, ranks // 4), ranks, 4 * ranks):
            paced = one.makespan < 20 or count == ranks
            loop = progress.attempt(f"loop: {name} on {count} ranks", lambda: carried_out(
                name, one, synthetic, output / "loop", count, paced=paced))  # fmt: skip  # noqa: B023
            if loop is not None:
                yield loop


def spoilt_loops(found: Mapping[str, Traced], output: Path, progress: Progress) -> Iterator[Loop]:
    """Carry spoilt paths out: what was traced must be beyond a limit."""
    name = next((item for item in ("mpi_io_test_strided", *found) if item in found and found[item].makespan < 20), None)
    for control, spoil in CONTROLS.items() if name is not None else ():
        one = found[str(name)]
        spoilt = spoil(one.path, np.random.default_rng(0))
        loop = progress.attempt(f"loop: {name}, {control}", lambda: carried_out(
            str(name), one, spoilt, output / "loop", one.path.info.ranks, paced=True,  # noqa: B023
            spoilt=control))  # fmt: skip  # noqa: B023
        if loop is not None:
            yield loop


# ---- makespans -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Spans:
    """Makespans of a program and of workloads made of its runs, in turn, s; how far their arrival rates are apart.

    Attributes
    ----------
    name : of the kernel.
    program, workload : makespans, s.
    arrival : Kolmogorov-Smirnov distance of each workload from its program.
    arrival_again : of each run of the program from the one before.
    """

    name: str
    program: list[float] = field(default_factory=list)
    workload: list[float] = field(default_factory=list)
    arrival: list[float] = field(default_factory=list)
    arrival_again: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Median of the ratios of the pairs."""
        return statistics.median(two / one for one, two in zip(self.program, self.workload, strict=True))

    @property
    def noise(self) -> tuple[float, float]:
        """Fastest and slowest run of the program, those at the ends left out where there are four."""
        inner = sorted(self.program)[1:-1] if len(self.program) > 3 else self.program
        return min(inner), max(inner)

    @property
    def passed(self) -> bool:
        """Whether the workload takes as long as the program, or as long as the program may take."""
        low, high = self.noise
        return abs(self.ratio - 1) <= SHARE or low <= statistics.median(self.workload) <= high

    @property
    def arrival_passed(self) -> bool:
        """Whether the workload's operations come when the program's do, or when they may come."""
        noise = statistics.median(self.arrival_again) if self.arrival_again else 0.0
        return statistics.median(self.arrival) <= max(noise, LIMITS["arrival"])


def makespans(names: Sequence[str], output: Path, pairs: int, progress: Progress) -> Iterator[Spans]:
    """Run each program and a sampled workload made of that run in turn."""
    before: dict[str, WorkloadPath] = {}

    def apart(one: WorkloadPath, two: WorkloadPath) -> float:
        return float(compare_paths(one, two).values["arrival"])

    def pair(found: Spans, number: int) -> Spans:
        own = programs.traced(found.name, output / "spans")
        synthetic = synthesize(own.path, mode="sampled", seed=number)
        again, _ = programs.replayed(synthetic, output / "spans" / "replay", programs.RANKS)
        found.program.append(own.makespan)
        found.workload.append(again.makespan)
        found.arrival.append(apart(expected_path(own.path, programs.RANKS),
                                   comparable_path(again.path, own.path, programs.RANKS)))  # fmt: skip
        if found.name in before:
            found.arrival_again.append(apart(before[found.name], own.path))
        before[found.name] = own.path
        return found

    every = {name: Spans(name) for name in names}
    for number in range(pairs):
        for name, found in every.items():  # in turn, so that what the machine does meanwhile is shared by all
            what = f"makespan: {name}, pair {number + 1} of {pairs}"
            progress.attempt(what, lambda: pair(found, number))  # noqa: B023
    yield from (found for found in every.values() if found.program)


# ---- output ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Results:
    """What was found so far."""

    rows: list[Row] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    spans: list[Spans] = field(default_factory=list)

    def failures(self) -> list[str]:
        """Return what is not as it should be."""
        found = [f"{row.name}, {row.mode}: {', '.join(row.failed) or 'a control passes'}" for row in self.rows
                 if bool(row.failed) != row.is_control]  # fmt: skip
        found += [f"{loop.name} on {loop.ranks} ranks{', ' * bool(loop.spoilt)}{loop.spoilt}: "
                  f"{', '.join(loop.failed) or 'a control passes'}" for loop in self.loops
                  if bool(loop.failed) != bool(loop.spoilt)]  # fmt: skip
        found += [f"{one.name}: arrival {statistics.median(one.arrival):.3f}" for one in self.spans
                  if not one.arrival_passed]  # fmt: skip
        return found + [f"{one.name}: makespan {one.ratio:.3f} times the program's" for one in self.spans
                        if not one.passed]  # fmt: skip

    def save(self, file: Path, progress: Progress) -> None:
        """Write the document; it is there whole or not at all."""
        document: dict[str, Any] = json.loads(to_json(self.rows)) if self.rows else {"pioneer_fidelity": 1}
        document |= {
            "limits": dict(LIMITS),
            "closed_loop": [asdict(loop) | {"failed": loop.failed} for loop in self.loops],
            "makespans_s": {one.name: {"program": one.program, "workload": one.workload, "ratio": one.ratio,
                                       "passed": one.passed} for one in self.spans},
            "arrival": {one.name: {"workload": one.arrival, "program_again": one.arrival_again,
                                   "passed": one.arrival_passed} for one in self.spans},
            "failures": self.failures(), "left_out": progress.left_out,
        }  # fmt: skip
        write_whole(file, json.dumps(document, indent=1) + "\n")


def _largest(loop: Loop) -> str:
    """Return the judged metric that is nearest to its limit, or farthest beyond it, but for those of time."""
    several = [name for name in loop.judged if name not in OF_PACE]
    name = max(several, key=lambda item: loop.values[item] / (LIMITS[item.rpartition(".")[2]] or 1e-9))
    return f"{loop.values[name]:.3f} {name}" if loop.values[name] else "0"


def loop_table(loops: Sequence[Loop]) -> str:
    """Return the closed loop as Markdown; values beyond a limit are bold, those that are not judged in brackets."""
    head = ["path", "ranks", "largest but for time", "bytes of every rank", "slack, us", "arrival", "makespan",
            "beyond"]  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for loop in loops:
        cells = [f"{loop.name}{', ' * bool(loop.spoilt)}{loop.spoilt}", str(loop.ranks), _largest(loop),
                 f"({max(loop.of_ranks.values()):.3f})" if loop.of_ranks else ""]  # fmt: skip
        for name in ("slack_us", "arrival", "makespan"):
            text = f"{loop.values[name]:.3g}"
            cells.append(f"**{text}**" if name in loop.failed else text if name in loop.judged else f"({text})")
        lines.append("| " + " | ".join([*cells, ", ".join(loop.failed) or "none"]) + " |")
    return "\n".join(lines)


def span_table(spans: Sequence[Spans]) -> str:
    """Return the makespans as Markdown."""
    head = ["kernel", "pairs", "program, s (fastest to slowest)", "workload, s", "median ratio", "judgment",
            "arrival: workload, program again", "judgment"]  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for one in spans:
        cells = [f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"
                 for values in (one.program, one.workload)]  # fmt: skip
        how = "within 5 %" if abs(one.ratio - 1) <= SHARE else "within the noise" if one.passed else "**beyond**"
        when = ", ".join(f"{statistics.median(values):.3f}" if values else "–"
                         for values in (one.arrival, one.arrival_again))  # fmt: skip
        limit = "**beyond**" if not one.arrival_passed else "within"
        every = (one.name, len(one.program), *cells, f"{one.ratio:.3f}", how, when, limit)
        lines.append(f"| {' | '.join(map(str, every))} |")
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="for traces, paths and results")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what is measured (all)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="programs, as the tables name them (all)")
    parser.add_argument("--cm1", type=Path, default=programs.CM1, metavar="FOLDER", help="CM1's DFTracer trace")
    parser.add_argument("--seeds", type=int, default=20, help="paths in each mode (20)")
    parser.add_argument("--pairs", type=int, default=10, help="of program and workload (10)")
    parser.add_argument("--budget", type=float, default=1200, metavar="S", help="begin nothing later than that (1200)")
    return parser.parse_args()


def main() -> int:
    """Measure and print."""
    options = _options()
    output = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    progress, results = Progress(options.budget), Results()
    found = traces_of_programs(output, options.only, options.cm1, progress)

    def note(several: list[Any], one: Any) -> None:
        several.append(one)
        results.save(output / "fidelity.json", progress)

    if "table" in options.parts:
        for name, one in found.items():
            rows = progress.attempt(f"table: {name}", lambda: fidelity({name: one.path}, options.seeds))  # noqa: B023
            for row in rows or ():
                note(results.rows, row)
        print(to_markdown(results.rows), flush=True)
    if "loop" in options.parts:
        for loop in (*closed_loop(found, output, progress), *spoilt_loops(found, output, progress)):
            note(results.loops, loop)
        print(loop_table(results.loops), flush=True)
    if "makespan" in options.parts:
        for spans in makespans([name for name in programs.KERNELS if name in found], output, options.pairs, progress):
            note(results.spans, spans)
        print(f"\n{span_table(results.spans)}", flush=True)
    results.save(output / "fidelity.json", progress)
    for line in (*results.failures(), *(f"left out: {what}: {why}" for what, why in progress.left_out.items())):
        print(line, file=sys.stderr)
    return int(bool(results.failures() or progress.left_out))


if __name__ == "__main__":
    sys.exit(main())
