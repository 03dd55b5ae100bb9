"""Run programs of Debian 12 natively and under this library, and compare the files that they write by MPI-IO.

    python scripts/applications.py                       all of them; status 2 where one is not installed
    python scripts/applications.py --install             apt-get installs those that are missing
    python scripts/applications.py lammps --ways default

LAMMPS, CP2K, ABINIT and PETSc run as Debian has built them (Open MPI), with the inputs below: each writes files by
MPI-IO and reads some of them again. Run it with the Python of ``build/openmpi/venv``. The files of each way of ``WAYS``
are compared with those of a native run byte for byte. Not compared are the patterns of ``TIMES``, and what differs
between two native runs, which the table counts. A way in which the library carried out no call is not equal. The
status is 1 unless all is equal.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

#: Hints of `mpiio-ext run` of each way.
WAYS = {
    "default": (),
    "two_phase": ("mpiox_exchange=two_phase", "cb_buffer_size=64k"),
    "staged": ("mpiox_delegates=2", "mpiox_close=staged", "mpiox_delegate_page=16k"),
}
#: Output of a program beside its data: dates, seconds and memory.
TIMES = ("*.out", "*.log", "*.abo")
LIMIT_S = 600
#: Columns of the table, each the sum of these statistics of the runs (docs/reference/statistics.md).
COUNTED = {
    "collectives": ("collective_writes", "collective_reads"),
    "accesses of one rank": ("independent_writes", "independent_reads"),
    "through delegates": ("delegated_writes", "delegated_reads"),
    "left to MPI": ("native_calls",),
}
_LAMMPS = """
units lj
lattice fcc 0.8442
region box block 0 6 0 6 0 6
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
dump 1 all atom/mpiio 10 all.mpiio.dump
dump 2 all custom/mpiio 10 step.*.mpiio id x y z vx vy vz
dump 3 all xyz/mpiio 10 all.mpiio.xyz
dump 4 all cfg/mpiio 10 step.*.mpiio.cfg mass type xs ys zs
restart 20 state.*.mpiio
run 40
write_restart last.mpiio
clear
read_restart last.mpiio
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
run 10
write_restart more.mpiio
"""
_CP2K = """
&GLOBAL
  PROJECT {project}
  RUN_TYPE ENERGY
&END GLOBAL
&FORCE_EVAL
  METHOD QS
  &DFT
    BASIS_SET_FILE_NAME BASIS_SET
    POTENTIAL_FILE_NAME GTH_POTENTIALS
    {external}
    &MGRID
      CUTOFF 60
    &END MGRID
    &SCF
      MAX_SCF 4
    &END SCF
    &XC
      &XC_FUNCTIONAL PADE
      &END XC_FUNCTIONAL
    &END XC
    &PRINT
      &E_DENSITY_CUBE
        STRIDE 1
      &END E_DENSITY_CUBE
      &V_HARTREE_CUBE
        FILENAME ={cube}
        STRIDE 1
      &END V_HARTREE_CUBE
    &END PRINT
  &END DFT
  &SUBSYS
    &CELL
      ABC 6 6 6
    &END CELL
    &COORD
      H 0 0 0
      H 0 0 0.74
    &END COORD
    &KIND H
      BASIS_SET DZV-GTH-PADE
      POTENTIAL GTH-PADE-q1
    &END KIND
  &END SUBSYS
&END FORCE_EVAL
"""
_READ_CUBE = "&EXTERNAL_POTENTIAL\n READ_FROM_CUBE\n SCALING_FACTOR 0.01\n&END EXTERNAL_POTENTIAL"
#: Two data sets, of which the second begins with the wave functions of the first.
_ABINIT = """
ndtset 2 getwfk2 1 pseudos "h.gth"
acell 3*10 ntypat 1 znucl 1 natom 2 typat 2*1 xcart -0.7 0 0 0.7 0 0
ecut 8 nband 2 kptopt 0 nkpt 1 nstep 4 toldfe 1d-6 diemac 2
iomode 1 paral_kgb 1 npband 2 npfft 1 npkpt 1 prtwf 1 prtden 1 prtpot 1
"""
_HYDROGEN = """Goedecker-Teter-Hutter
1 1 960508
2 1 0 0 2001 0.
0.2 -4.0663326 0.6778322 0 0
0 0 0
0 0
1.36 .2 .6
"""
_PETSC = """
import sys
sys.path.insert(0, "/usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real/lib/python3/dist-packages")
import petsc4py
petsc4py.init([])
from petsc4py import PETSc
matrix = PETSc.Mat().createAIJ([1000, 1000], nnz=3)
for row in range(*matrix.getOwnershipRange()):
    for column in range(max(0, row - 1), min(1000, row + 2)):
        matrix[row, column] = row * 3 + column
matrix.assemble()
x, y = matrix.createVecs()
x.array[:] = range(*x.getOwnershipRange())
matrix.mult(x, y)
for name, read in ("first", None), ("second", "first"):
    if read:
        viewer = PETSc.Viewer().createMPIIO(read, "r")
        found, matrix = PETSc.Vec().load(viewer), PETSc.Mat().load(viewer)
        y = found * 2
    viewer = PETSc.Viewer().createMPIIO(name, "w")
    y.view(viewer)
    matrix.view(viewer)
    viewer.destroy()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program of Debian: its package, the commands under mpirun, its ranks and the files that it needs."""

    package: str
    commands: tuple[tuple[str, ...], ...]
    ranks: int
    inputs: dict[str, str]


PROGRAMS = {
    "lammps": Program(
        package="lammps", ranks=3, commands=(("lmp", "-in", "in", "-log", "none"),), inputs={"in": _LAMMPS}
    ),
    "cp2k": Program(
        package="cp2k",
        ranks=2,
        commands=(("cp2k.psmp", "-i", "in1"), ("cp2k.psmp", "-i", "in2")),
        inputs={
            "in1": _CP2K.format(project="first", cube="pot.cube", external=""),
            "in2": _CP2K.format(project="second", cube="pot2.cube", external=_READ_CUBE),
        },
    ),
    "abinit": Program(
        package="abinit", ranks=2, commands=(("abinit", "in.abi"),), inputs={"in.abi": _ABINIT, "h.gth": _HYDROGEN}
    ),
    "petsc": Program(
        package="python3-petsc4py-real", ranks=4, commands=(("/usr/bin/python3", "in.py"),), inputs={"in.py": _PETSC}
    ),
}


def version(package: str) -> str:
    """Return the version of an installed package of Debian, or ""."""
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Status} ${Version}", package], capture_output=True, text=True, check=False
    )
    return done.stdout.split()[-1] if done.stdout.startswith("install ok installed") else ""


def run(program: Program, folder: Path, words: list[str]) -> dict[str, bytes]:
    """Run the commands of a program in a new folder, with words between mpirun and each; return the output."""
    folder.mkdir(parents=True)
    for name, text in program.inputs.items():
        (folder / name).write_text(text, encoding="ascii")
    env = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMP_NUM_THREADS": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    for number, command in enumerate(program.commands):
        with (folder / f"{number}.out").open("w", encoding="utf-8") as out:
            subprocess.run(
                ["mpirun.openmpi", "-n", str(program.ranks), *words, *command],
                cwd=folder,
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=LIMIT_S,
                env={**os.environ, **env},
            )
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and path.name not in program.inputs and not any(map(path.match, TIMES))
    }


def served(stats: Path) -> list[int]:
    """Return the numbers of the columns of ``COUNTED``, of all commands."""
    lines = [json.loads(line) for line in stats.read_text("utf-8").splitlines()] if stats.exists() else []
    return [sum(line[name] for line in lines if line["kind"] == "run" for name in names) for names in COUNTED.values()]


def compare(title: str, ways: list[str], folder: Path, extension: str) -> bool:
    """Run a program in all ways, and print a row of the table for each; return whether all are equal."""
    program, fine = PROGRAMS[title], True
    native, again = (run(program, folder / title / name, []) for name in ("native", "native-again"))
    same = {name for name, data in native.items() if again.get(name) == data}
    for way in ways:
        stats = folder / title / f"{way}.jsonl"
        hints = [word for hint in WAYS[way] for word in ("-H", hint)]
        found = run(program, folder / title / way, [extension, "run", f"--stats={stats}", *hints, "--"])
        wrong = sorted(name for name in same | (set(found) - set(again)) if found.get(name) != native.get(name))
        calls = served(stats)
        idle = sum(calls[:2]) == 0 or (way == "staged" and calls[2] == 0)
        equal = not wrong and bool(same) and not idle
        words = "yes" if equal else f"NO: {', '.join(wrong) or ('no call served' if same else 'no file to compare')}"
        print(
            f"| {title} | {version(program.package)} | {way} | {' | '.join(map(str, calls))} "
            f"| {len(same)} of {len(native)} | {words} |",
            flush=True,
        )
        fine &= equal
    return fine


def main() -> int:
    """Read the command line, install missing packages if requested, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"some of {', '.join(PROGRAMS)}")
    parser.add_argument("--ways", default=",".join(WAYS), help="some of %(default)s")
    parser.add_argument("--install", action="store_true", help="apt-get install missing packages (as root)")
    parser.add_argument("--extension", default=str(Path(sys.prefix) / "bin" / "mpiio-ext"), help="%(default)s")
    parser.add_argument("--folder", type=Path, help="a new folder for the files of all runs, which stays")
    options = parser.parse_args()
    titles, ways = options.programs or list(PROGRAMS), options.ways.split(",")
    if unknown := [word for word in [*titles, *ways] if word not in {*PROGRAMS, *WAYS}]:
        parser.error(f"unknown: {', '.join(unknown)}")
    missing = [package for title in titles if not version(package := PROGRAMS[title].package)]
    if missing and not options.install:
        print(f"not installed: {' '.join(missing)}; --install installs them by apt-get", file=sys.stderr)
        return 2
    if missing:
        subprocess.run(
            ["apt-get", "install", "-y", "--no-install-recommends", *missing],
            check=True,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
    columns = ["program", "version", "way", *COUNTED, "files compared", "equal"]
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder.absolute() if options.folder else Path(scratch)
        return int(sum(not compare(title, ways, folder, options.extension) for title in titles) > 0)


if __name__ == "__main__":
    sys.exit(main())
