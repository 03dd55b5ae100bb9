"""Runs of programs whose I/O problem is known (``diagnosis/*.c``, :mod:`corpora.diagnosis_truth`) under Darshan.

A run is of a variant: ``plain``, as Darshan is by default; ``dxt``, with DXT; ``bare``, without HEATMAP; ``slow``, on
storage of 200 MB/s a rank at most, and ``slow-dxt``.
"""

from __future__ import annotations

import pathlib
import shutil
import sys
import tempfile

from corpora.diagnosis_truth import KINDS
from support import cbuild
from support.launch import base_environment, launcher, run_bounded

SOURCES = sorted(str(path) for path in (pathlib.Path(__file__).parent / "diagnosis").glob("*.c"))
INPUT_BYTES = 64 << 20  # INPUT_MIB of kernel.h
TIMEOUT_S = 300.0


def program() -> str:
    """Compile the programs, which are one; return its path."""
    wrapper = str(pathlib.Path(sys.prefix) / "bin" / "mpicc")
    return str(cbuild.compile_c([wrapper, "-O2", *cbuild.FLAGS, *SOURCES], "diagnosis_kinds"))


def prepare(data: pathlib.Path) -> None:
    """Make the folder of the data as the programs want it."""
    shutil.rmtree(data, ignore_errors=True)
    (data / "slow").mkdir(parents=True)
    (data / "input").write_bytes(bytes(INPUT_BYTES))


def environment_of(variant: str, kind: str, data: pathlib.Path, darshan: str) -> dict[str, str]:
    """Return the variables of a run: what is preloaded, and in which order."""
    preloaded, found = [darshan], {}
    slow = variant.startswith("slow")
    if slow or KINDS[kind].possible:
        preloaded.append(cbuild.slow_storage())
        below = data if slow else data / "slow"
        found |= {"SLOW_STORAGE_PATH": str(below), "SLOW_STORAGE_MBPS": "200" if slow else "20"}
    found |= {"DXT_ENABLE_IO_TRACE": "1"} if variant.endswith("dxt") else {}
    found |= {"DARSHAN_MOD_DISABLE": "HEATMAP"} if variant == "bare" else {}
    return found | {"LD_PRELOAD": ":".join(preloaded)}


def run(kind: str, ranks: int, variant: str, darshan: str, folder: pathlib.Path) -> dict[str, object]:
    """Run one kind with Darshan's runtime library; leave its log in `folder`, and return the row of its truth."""
    name = f"{kind.replace(':', '')}-{ranks}-{variant}.darshan"
    with tempfile.TemporaryDirectory(dir=folder) as made, tempfile.TemporaryDirectory() as logs:
        data = pathlib.Path(made, "data")
        prepare(data)
        own = environment_of(variant, kind, data, darshan) | {"DARSHAN_LOGPATH": logs}
        command = [launcher() or "mpiexec", "-n", str(ranks), "env", *(f"{key}={value}" for key, value in own.items())]
        environment = base_environment() | {"OMPI_MCA_io": "romio321"}
        done = run_bounded([*command, program(), kind, str(data), "1"], env=environment, timeout_s=TIMEOUT_S)
        (log,) = pathlib.Path(logs).rglob("*.darshan")
        shutil.move(log, folder / name)
    parts = [line.split() for line in done.stdout.splitlines() if line.split(" ")[0] in KINDS]
    return {"log": name, "kind": kind, "seconds": {part[0]: float(part[1]) for part in parts}}
