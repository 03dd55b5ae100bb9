"""How close PIONEER's synthetic workloads come to programs: synthesized, carried out, and traced again.

Kernels of the bench are traced on 4 ranks by the tracer of this project and by ltrace (where it is installed), CM1
comes from a DFTracer trace (where it is). Three tables, as Markdown and in OUTPUT/fidelity.json:

1. every mode of the synthesis against each path: the worst of 20 seeds, and controls that must fail;
2. the closed loop: a sampled path carried out by 1, 4 and 16 ranks under the tracer, the path of that trace against it;
3. makespans: program and sampled workload in turn, 10 pairs, and the noise of the program's own runs.

    build/openmpi/venv/bin/python benchmarks/pioneer_fidelity.py --output /tmp/fidelity

Exit status 1 if a metric is beyond its limit, or a control within all.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.pioneer.compare import compare_paths
from mpiio_ext.pioneer.fidelity import fidelity, to_json, to_markdown
from mpiio_ext.pioneer.path import WorkloadPath, extract, find_groups
from mpiio_ext.pioneer.readers import find_reader, ltrace
from mpiio_ext.pioneer.sanitize import SANITIZED, application_only, sanitize
from mpiio_ext.pioneer.synthesis import synthesize

RANKS = 4
#: Interface and parameters of each kernel.
KERNELS = {
    "mpi_io_test_strided": ("mpiio", ("size=4096", "nobj=1000")), "ior_random": ("posix", ()),
    "s3asim": ("mpiio", ()), "nas_btio": ("mpiio", ()), "flash": ("hdf5", ()), "s3d": ("pnetcdf", ()),
}  # fmt: skip
#: What ltrace can follow: calls of mpi4py's module.
UNDER_LTRACE = ("mpi_io_test_strided", "s3asim", "nas_btio", "coll_perf")
CM1 = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "cm1_dftracer"
BIN = Path(sys.prefix) / "bin"
#: Time is the machine's, not the path's, when ranks outnumber processors.
OF_TIME = ("slack", "arrival")
ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PATH": f"{BIN}:{os.environ['PATH']}",
}


def run(words: Sequence[Any], seconds: float = 600) -> None:
    """Run a command; end with what it has printed where it fails."""
    done = subprocess.run([*map(str, words)], env=ENVIRONMENT, capture_output=True, text=True, timeout=seconds)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, words))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


# ---- traces ----------------------------------------------------------------------------------------------------------


def application(trace: Path, place: str) -> dict[int, pa.Table]:
    """Return by rank what the application has done to files whose names contain `place`; their names end there."""
    _, batches = find_reader(trace).read([trace])
    tables = [application_only(pa.Table.from_batches([batch], SANITIZED)) for batch in sanitize(batches)]
    whole = pa.concat_tables(tables).unify_dictionaries()
    names = whole["file"].cast(pa.string())
    whole = whole.set_column(whole.schema.get_field_index("file"), "file", pc.replace_substring_regex(
        names, f"^.*{place}/", "")).filter(pc.fill_null(pc.match_substring(names, f"{place}/"), False))  # fmt: skip
    ranks = pc.unique(whole["rank"]).to_pylist()
    return {rank: whole.filter(pc.equal(whole["rank"], rank)) for rank in sorted(ranks)}


def path_of(tables: Mapping[int, pa.Table]) -> WorkloadPath:
    """Return the workload path of traces."""
    words: dict[str, int] = {}
    operations = {rank: np.array([words.setdefault(word, len(words)) for word in table["operation"].to_pylist()],
                                 np.int32) for rank, table in tables.items()}  # fmt: skip
    return extract(tables, find_groups(operations, root=min(tables)), ranks=len(tables))


def kernel(name: str, files: Path, *, slow: bool = False) -> list[Any]:
    """Return the command that runs a kernel once, without the MPI starter; slow: what traces it slows it down."""
    interface, given = KERNELS.get(name, ("mpiio", ()))
    given = tuple(item.replace("nobj=1000", "nobj=100") for item in given) if slow else given
    parameters = [word for item in given for word in ("-P", item)]
    return [sys.executable, "-m", "mpiio_ext.bench", "-k", name, "--preset", "quick", "-m", "native", "-i", interface,
            *parameters,
            "--repetitions", "1", "--no-plot", "--no-report", "--path", files,
            "--output", f"{files}-results"]  # fmt: skip


def traced(words: Sequence[Any], trace: Path, ranks: int = RANKS) -> None:
    """Run a program under the tracer."""
    shutil.rmtree(trace, ignore_errors=True)
    run(["mpirun", "-n", ranks, BIN / "mpiio-ext", "trace", "-o", trace, "--", *words])


def under_ltrace(words: Sequence[Any], trace: Path) -> None:
    """Run a program under ltrace, as docs/pioneer-traces.md says."""
    trace.mkdir()
    prototypes = Path(ltrace.__file__).with_name("ltrace.conf")
    rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    command = (f"exec ltrace -F {prototypes} -f -S -tt -T -s 4096 -e 'MPI_*@MPI.*' -o {trace}/trace.{rank} "
               f"{shlex.join(map(str, words))}")  # fmt: skip
    run(["mpirun", "-n", RANKS, "sh", "-c", command])


def paths_of_programs(output: Path) -> Iterator[tuple[str, WorkloadPath]]:
    """Trace all kernels, and read CM1's trace; yield each path with its name."""
    for name in KERNELS:
        files = output / f"{name}-files"
        files.mkdir(exist_ok=True)
        traced(kernel(name, files), output / f"{name}-trace")
        yield name, path_of(application(output / f"{name}-trace", files.name))
    for name in UNDER_LTRACE if shutil.which("ltrace") else ():
        files, trace = output / f"{name}-ltrace-files", output / f"{name}-ltrace"
        files.mkdir(exist_ok=True)
        shutil.rmtree(trace, ignore_errors=True)
        under_ltrace(kernel(name, files, slow=True), trace)
        yield f"{name} (ltrace)", path_of(application(trace, files.name))
    if CM1.is_dir():
        _, batches = find_reader(CM1).read([CM1])
        whole = pa.concat_tables([application_only(pa.Table.from_batches([batch], SANITIZED))
                                  for batch in sanitize(batches)]).unify_dictionaries()  # fmt: skip
        ranks = pc.unique(whole["rank"]).to_pylist()
        yield "cm1", path_of({rank: whole.filter(pc.equal(whole["rank"], rank)) for rank in sorted(ranks)})


# ---- the closed loop -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loop:
    """A synthetic path, carried out and traced again.

    Attributes
    ----------
    name, ranks : of the path; that have carried it out.
    worst : largest value of a metric, and `metric` its name; those of time are left out.
    slack, arrival : of time.
    failed : metrics beyond their limits, those of time left out.
    """

    name: str
    ranks: int
    worst: float
    metric: str
    slack: float
    arrival: float
    failed: list[str]


def replayed(path: WorkloadPath, output: Path, ranks: int) -> dict[int, pa.Table]:
    """Carry a path out under the tracer; return what each rank has done."""
    path.save(output / "synthetic.parquet")
    below = output / "below"
    shutil.rmtree(below, ignore_errors=True)
    words = [BIN / "mpiio-ext", "pioneer", "replay", output / "synthetic.parquet", below]
    traced(words, output / "again", ranks)
    return application(output / "again", below.name)


def closed_loop(paths: Mapping[str, WorkloadPath], output: Path) -> list[Loop]:
    """Carry a sampled path of each program out by fewer, as many and more ranks, and compare what was traced."""
    rows = []
    for name, path in paths.items():
        synthetic = synthesize(path, mode="sampled", seed=1)
        for ranks in (RANKS // 4, RANKS, 4 * RANKS):
            print(f"closed loop: {name} on {ranks} ranks", file=sys.stderr)
            found = compare_paths(synthetic, path_of(replayed(synthetic, output, ranks)))
            values = {metric: value for metric, value in found.values.items() if metric not in OF_TIME}
            metric = max(values, key=lambda item: values[item])
            failed = [item for item in found.failed if item not in OF_TIME]
            rows.append(Loop(name, ranks, values[metric], metric, found.values["slack"], found.values["arrival"],
                             failed))  # fmt: skip
    return rows


# ---- makespans -------------------------------------------------------------------------------------------------------


def makespan(tables: Mapping[int, pa.Table]) -> float:
    """Return the time from the first call of any rank to the end of the last one, in s."""
    begins = min(pc.min(table["timestamp"]).as_py() for table in tables.values())
    ends = max(pc.max(pc.add(table["timestamp"], pc.fill_null(table["duration"], 0))).as_py()
               for table in tables.values())  # fmt: skip
    return float(ends - begins) / 1e9


def makespans(names: Sequence[str], output: Path, pairs: int) -> dict[str, tuple[list[float], list[float]]]:
    """Run each program and its sampled workload in turn; return their makespans in s.

    The workload is sampled from the first of the program's runs, which counts as none of the pairs.
    """
    found: dict[str, tuple[list[float], list[float]]] = {}
    for name in names:
        files = output / f"{name}-files"
        words = kernel(name, files)
        traced(words, output / "pair")
        path = path_of(application(output / "pair", files.name))
        own: list[float] = []
        synthetic: list[float] = []
        for seed in range(pairs):
            print(f"makespans: {name}, pair {seed + 1} of {pairs}", file=sys.stderr)
            traced(words, output / "pair")
            own.append(makespan(application(output / "pair", files.name)))
            synthetic.append(makespan(replayed(synthesize(path, mode="sampled", seed=seed), output, RANKS)))
        found[name] = own, synthetic
    return found


# ---- output ----------------------------------------------------------------------------------------------------------


def loop_table(rows: Sequence[Loop]) -> str:
    """Return the closed loop as Markdown."""
    lines = ["| path | ranks | largest metric but for time | slack | arrival |", "|---|---|---|---|---|"]
    for row in rows:
        mark = "**" if row.failed else ""
        lines.append(f"| {row.name} | {row.ranks} | {mark}{row.worst:.3f} {row.metric if row.worst else ''}{mark} | "
                     f"{row.slack:.3f} | {row.arrival:.3f} |")  # fmt: skip
    return "\n".join(lines)


def makespan_table(found: Mapping[str, tuple[list[float], list[float]]]) -> str:
    """Return the makespans as Markdown."""
    lines = ["| kernel | program, s (fastest to slowest) | workload, s | median ratio |", "|---|---|---|---|"]
    for name, (own, synthetic) in found.items():
        ratio = statistics.median(two / one for one, two in zip(own, synthetic, strict=True))
        lines.append(f"| {name} | {statistics.median(own):.3f} ({min(own):.3f} to {max(own):.3f}) | "
                     f"{statistics.median(synthetic):.3f} ({min(synthetic):.3f} to {max(synthetic):.3f}) | "
                     f"{ratio:.3f} |")  # fmt: skip
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="for traces, paths and results")
    parser.add_argument("--seeds", type=int, default=20, help="paths in each mode (20)")
    parser.add_argument("--pairs", type=int, default=10, help="of program and workload (10)")
    options = parser.parse_args()
    output = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, path in paths_of_programs(output):
        print(f"{name}: {path.table.num_rows:,} operations", file=sys.stderr)
        path.save(output / f"{name.replace(' ', '_')}.parquet")
        paths[name] = path
    rows = fidelity(paths, options.seeds, lambda what: print(what, file=sys.stderr))
    print(to_markdown(rows), flush=True)
    kernels = {name: path for name, path in paths.items() if name in KERNELS}
    loops = closed_loop(kernels, output)
    print(loop_table(loops), flush=True)
    spans = makespans(list(kernels), output, options.pairs)
    print(f"\n{makespan_table(spans)}")
    document = json.loads(to_json(rows)) | {
        "closed_loop": [{name: getattr(row, name) for name in Loop.__slots__} for row in loops],
        "makespans_s": {name: {"program": own, "workload": synthetic} for name, (own, synthetic) in spans.items()},
    }
    (output / "fidelity.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return int(any(bool(row.failed) != row.is_control for row in rows) or any(row.failed for row in loops))


if __name__ == "__main__":
    sys.exit(main())
