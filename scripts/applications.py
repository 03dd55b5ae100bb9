"""Run programs of Debian 12 natively and under this library, and compare the files that they write by MPI-IO.

    python scripts/applications.py                       all of them; status 2 where one is not installed
    python scripts/applications.py --install             apt-get installs those that are missing
    python scripts/applications.py lammps --ways default

LAMMPS, CP2K, ABINIT, PETSc, Code_Saturne, Meep, DOLFIN and mpi4py-fft run as Debian has built them (Open MPI), with the
inputs below: each writes files by MPI-IO, and all but Code_Saturne's mesher read some of them again. Run it with the
Python of ``build/openmpi/venv``. The files of each way of ``WAYS`` are compared with those of a native run
byte for byte; of files of HDF5, in which there are times, names, datasets and attributes. Not compared are the patterns
of ``TIMES``, and what differs between two native runs, which the table counts. A way in which the library carried out
no call is not equal. The status is 1 unless all is equal.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import mpi4py
import numpy as np

mpi4py.rc.initialize = False  # h5py imports MPI; only the programs that this script launches run under it
import h5py  # noqa: E402

#: Hints of `mpiio-ext run` of each way.
WAYS = {
    "default": (),
    "two_phase": ("mpiox_exchange=two_phase", "cb_buffer_size=64k"),
    "staged": ("mpiox_delegates=2", "mpiox_close=staged", "mpiox_delegate_page=16k"),
}
#: Output of a program beside its data: dates, seconds and memory.
TIMES = ("*.out", "*.log", "*.abo", "timer_stats.csv")
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

#: A cube of hexahedra in Gmsh's format, which Code_Saturne's preprocessor reads.
_SIDE = 12
_POINTS = list(itertools.product(range(_SIDE + 1), repeat=3))
_CORNERS = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))


def cube() -> str:
    """Return the mesh of a cube of ``_SIDE`` cells on each side, as text."""
    number = {point: index for index, point in enumerate(_POINTS, 1)}
    nodes = [f"{number[point]} {' '.join(f'{x / _SIDE:g}' for x in point)}" for point in _POINTS]
    cells = [
        f"{index} 5 2 1 1 {' '.join(str(number[x + i, y + j, z + k]) for i, j, k in _CORNERS)}"
        for index, (x, y, z) in enumerate(itertools.product(range(_SIDE), repeat=3), 1)
    ]
    lines = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$Nodes", str(len(nodes)), *nodes, "$EndNodes"]
    return "\n".join([*lines, "$Elements", str(len(cells)), *cells, "$EndElements", ""])


_MEEP = """
import meep as mp
wave = mp.Simulation(
    cell_size=mp.Vector3(8, 8, 0),
    resolution=10,
    boundary_layers=[mp.PML(1.0)],
    geometry=[mp.Block(mp.Vector3(mp.inf, 1, mp.inf), center=mp.Vector3(), material=mp.Medium(epsilon=12))],
    sources=[mp.Source(mp.ContinuousSource(frequency=0.15), component=mp.Ez, center=mp.Vector3(-3, 0))],
)
wave.run(mp.at_beginning(mp.output_epsilon), mp.to_appended("ez", mp.at_every(2, mp.output_efield_z)), until=10)
wave.dump("state")
wave.load("state")
wave.run(mp.at_end(mp.output_efield_z), until=2)
"""
#: SCOTCH's partition differs from run to run, so the files of meshes do, too: the program checks what it reads of them.
_DOLFIN = """
from dolfin import MPI, HDF5File, Mesh, MeshFunction, PETScVector, UnitCubeMesh, XDMFFile, cells
comm = MPI.comm_world
mesh, vector = UnitCubeMesh(comm, 6, 6, 6), PETScVector(comm, 1000)
vector.set_local([float(i) for i in range(*vector.local_range())])
vector.apply("insert")
for step in range(3):
    with HDF5File(comm, f"mesh{step}.h5", "w") as file:
        file.write(mesh, "/mesh")
    with HDF5File(comm, f"vector{step}.h5", "w") as file:
        file.write(vector, "/vector")
    mesh, vector = Mesh(comm), PETScVector(comm)
    with HDF5File(comm, f"mesh{step}.h5", "r") as file:
        file.read(mesh, "/mesh", False)
    with HDF5File(comm, f"vector{step}.h5", "r") as file:
        file.read(vector, "/vector", False)
    assert abs(MPI.sum(comm, sum(cell.volume() for cell in cells(mesh))) - 1) < 1e-9
with XDMFFile(comm, "marks.xdmf") as file:
    file.write(MeshFunction("size_t", mesh, 2, 7))
"""
_FFT = """
import numpy as np
from mpi4py import MPI
from mpi4py_fft import HDF5File, PFFT, newDistArray
fft = PFFT(MPI.COMM_WORLD, (16, 18, 20), dtype=float)
u, v = newDistArray(fft, False), newDistArray(fft, False)
u[:] = np.random.default_rng(MPI.COMM_WORLD.rank).random(u.shape)
file = HDF5File("u.h5", mode="w")
for step in range(3):
    file.write(step, {"u": [u, (u, [slice(None), 4, slice(None)])]})
HDF5File("u.h5", mode="r").read(v, "u", step=2)
HDF5File("again.h5", mode="w").write(0, {"v": [v]})
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program of Debian: its packages, the commands under mpirun, its ranks and the files that it needs.

    The command ``before`` runs without mpirun, ahead of the others.
    """

    packages: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    ranks: int
    inputs: dict[str, str]
    before: tuple[str, ...] = ()


PROGRAMS = {
    "lammps": Program(
        packages=("lammps",), ranks=3, commands=(("lmp", "-in", "in", "-log", "none"),), inputs={"in": _LAMMPS}
    ),
    "cp2k": Program(
        packages=("cp2k",),
        ranks=2,
        commands=(("cp2k.psmp", "-i", "in1"), ("cp2k.psmp", "-i", "in2")),
        inputs={
            "in1": _CP2K.format(project="first", cube="pot.cube", external=""),
            "in2": _CP2K.format(project="second", cube="pot2.cube", external=_READ_CUBE),
        },
    ),
    "abinit": Program(
        packages=("abinit",), ranks=2, commands=(("abinit", "in.abi"),), inputs={"in.abi": _ABINIT, "h.gth": _HYDROGEN}
    ),
    "petsc": Program(
        packages=("python3-petsc4py-real",),
        ranks=4,
        commands=(("/usr/bin/python3", "in.py"),),
        inputs={"in.py": _PETSC},
    ),
    "code_saturne": Program(
        packages=("code-saturne-bin",),
        ranks=3,
        commands=(("/usr/lib/code_saturne/cs_solver", "--preprocess"),),
        inputs={"cube.msh": cube()},
        before=("/usr/lib/code_saturne/cs_preprocess", "-o", "mesh_input", "cube.msh"),
    ),
    "meep": Program(
        packages=("python3-meep-openmpi", "python3-matplotlib", "python3-scipy"),
        ranks=3,
        commands=(("/usr/bin/python3", "in.py"),),
        inputs={"in.py": _MEEP},
    ),
    "dolfin": Program(
        packages=("python3-dolfin",), ranks=3, commands=(("/usr/bin/python3", "in.py"),), inputs={"in.py": _DOLFIN}
    ),
    "mpi4py-fft": Program(
        packages=("python3-mpi4py-fft", "python3-h5py-mpi", "python3-h5py"),
        ranks=3,
        commands=(("/usr/bin/python3", "in.py"),),
        inputs={"in.py": _FFT},
    ),
}


def version(package: str) -> str:
    """Return the version of an installed package of Debian, or ""."""
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Status} ${Version}", package], capture_output=True, text=True, check=False
    )
    return done.stdout.split()[-1] if done.stdout.startswith("install ok installed") else ""


def content(path: Path) -> bytes:
    """Return what is compared of a file: its bytes, or the names and values in a file of HDF5."""
    if path.suffix != ".h5":
        return path.read_bytes()
    parts: list[bytes] = []

    def add(name: str, item: h5py.Group | h5py.Dataset) -> None:
        values = {key: np.asarray(value) for key, value in item.attrs.items()}
        if isinstance(item, h5py.Dataset):
            values[""] = np.asarray(item[()])
        for key, value in values.items():
            parts.append(f"{name} {key} {value.dtype} {value.shape} ".encode() + value.tobytes())

    with h5py.File(path, "r") as file:
        add("/", file)
        file.visititems(add)
    return b"\n".join(parts)


def run(program: Program, folder: Path, words: list[str]) -> dict[str, bytes]:
    """Run the commands of a program in a new folder, with words between mpirun and each; return ``content`` of each."""
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
    if program.before:
        subprocess.run(program.before, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=LIMIT_S)
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
        str(path.relative_to(folder)): content(path)
        for path in folder.rglob("*")
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
            f"| {title} | {version(program.packages[0])} | {way} | {' | '.join(map(str, calls))} "
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
    missing = [package for title in titles for package in PROGRAMS[title].packages if not version(package)]
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
