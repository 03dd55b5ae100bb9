"""The peers of a comparison: every installed MPI library, each with its own MPI-IO and with this library under it.

A peer is a launcher, a program, and an environment. All peers run the same program (``csrc/tools/bandwidth``), which
does not know this library. LD_PRELOAD loads this library under it. Installations are the running Python's and, in a
source checkout, those under ``build/*/venv``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from mpiio_ext.bench.errors import BenchError
from mpiio_ext.common.children import run

#: The micro-benchmark.
PROGRAM = "mpiio_bandwidth"
#: That of HDF5, and its patterns.
HDF5_PROGRAM = Path(__file__).with_name("hdf5_bandwidth.py")
HDF5_PATTERNS = ("contiguous", "blocks3d")

_QUESTION = """
import json
from mpiio_ext import get_library
from mpiio_ext._binding import ffi, lib
library = get_library()
print(json.dumps({"family": ffi.string(lib.mpiio_ext_mpi_family()).decode(), "library": str(library),
                  "programs": str(library.parent.parent / "bin")}))
"""

#: What makes ROMIO's collective buffering use every rank; by default it has one aggregator per host.
_TUNED = {"cb_config_list": "*:*", "romio_cb_write": "enable", "romio_cb_read": "enable"}

_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """One MPI with this library built for it.

    Attributes
    ----------
    family : "openmpi" or "mpich"
    version : name and version number, from the launcher's --version
    mpiexec, program, library, python : paths
    romio : name of Open MPI's ROMIO component, "" when there is none
    """

    family: str
    version: str
    mpiexec: Path
    program: Path
    library: Path
    python: Path
    romio: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One way to run the micro-benchmark.

    Attributes
    ----------
    name : as in the results, e.g. "ompi_romio_tuned"
    title : for people
    ours : this library is under the program
    raw : the program runs without MPI-IO, as the limit
    under : more shared libraries below the program and its launcher
    hdf5 : the micro-benchmark is that of HDF5
    until_close : its times count closing the file: with delegates that is when the last of the data reaches it
    """

    name: str
    title: str
    installation: Installation
    ours: bool = False
    raw: bool = False
    hdf5: bool = False
    until_close: bool = False
    hints: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    under: tuple[str, ...] = ()

    @property
    def native(self) -> bool:
        """The MPI library's own MPI-IO."""
        return not self.ours and not self.raw

    def program(self, arguments: Iterable[str]) -> list[str]:
        """Return the part of a launch's command line that every rank is."""
        libraries = [*([str(self.installation.library)] if self.ours else []), *self.under]
        there = [f"LD_PRELOAD={':'.join(libraries)}"] if libraries else []
        hints = [text for name, value in self.hints.items() for text in ("--hint", f"{name}={value}")]
        raw = ["--raw"] if self.raw else []
        one = self.installation
        program = [str(one.python), "-m", "mpi4py", str(HDF5_PROGRAM)] if self.hdf5 else [str(one.program)]
        return ["env", *there, *program, *arguments, *hints, *raw]

    def command(self, ranks: int, arguments: Iterable[str]) -> list[str]:
        """Return the command line of one launch."""
        return [str(self.installation.mpiexec), "-n", str(ranks), *self.program(arguments)]

    def variables(self) -> dict[str, str]:
        """Return the environment of one launch; hints of the caller's environment do not reach it."""
        own = own_environment()
        if self.under:
            own["LD_PRELOAD"] = ":".join(self.under)
        return own | _ENVIRONMENT | self.environment


def own_environment() -> dict[str, str]:
    """Return this process's environment without the hints, settings and preloads that must not reach a launch."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MPIOX_")}
    own.pop("LD_PRELOAD", None)
    return own


def launcher_of(python: Path) -> str | None:
    """Return the launcher of a Python's MPI: the one beside that Python, else one on PATH; None if neither exists."""
    beside = python.parent / "mpirun"
    return str(beside) if beside.exists() else shutil.which("mpirun") or shutil.which("mpiexec")


def _ask(python: Path) -> Installation | None:
    environment = {**os.environ, **_ENVIRONMENT}
    answer = run([str(python), "-c", _QUESTION], limit_s=60, environment=environment)
    if answer.trouble:
        return None
    found = json.loads(answer.output)
    launcher = launcher_of(python)
    program = Path(found["programs"]) / PROGRAM
    if launcher is None or not program.exists():
        return None
    number = re.search(r"\d+\.\d+(\.\d+)?\S*", run([launcher, "--version"], limit_s=60).output)
    name = {"openmpi": "Open MPI", "mpich": "MPICH"}.get(found["family"], found["family"])
    romio = ""
    info = shutil.which("ompi_info")
    if found["family"] == "openmpi" and info is not None:
        match = re.search(r"MCA io: (romio\d+)", run([info], limit_s=60, environment=environment).output)
        romio = match.group(1) if match else ""
    return Installation(
        family=found["family"],
        version=f"{name} {number.group() if number else '(unknown version)'}",
        mpiexec=Path(launcher),
        program=program,
        library=Path(found["library"]),
        python=python,
        romio=romio,
    )


def find_installations() -> list[Installation]:
    """Return the installations at hand, the running Python's first, one per MPI family."""
    checkout = Path(__file__).resolve().parents[3]
    candidates = [Path(sys.executable), *sorted(checkout.glob("build/*/venv/bin/python"))]
    found: dict[str, Installation] = {}
    for python in candidates:
        installation = _ask(python)
        if installation is not None:
            found.setdefault(installation.family, installation)
    return list(found.values())


def with_delegates(peers: Iterable[Peer], delegates: str, mode: str) -> list[Peer]:
    """Return the peers, each one with this library followed by a copy with I/O delegates; "": without copies."""
    found = []
    for peer in peers:
        found.append(peer)
        if peer.ours and delegates:
            hints = {**peer.hints, "mpiox_delegates": delegates, "mpiox_delegate_mode": mode}
            found.append(
                replace(
                    peer, name=f"{peer.name}_delegates", title=f"{peer.title}, delegates", until_close=True, hints=hints
                )
            )
    return found


def peers_of(installation: Installation, ranks: int) -> list[Peer]:
    """Return the peers of one installation: its own MPI-IO, plain and tuned, and this library under it."""
    peer = partial(Peer, installation=installation)
    tuned = {"cb_nodes": str(ranks), **_TUNED}
    if installation.family == "mpich":
        return [
            peer(name="mpich_romio", title="MPICH ROMIO"),
            peer(name="mpich_romio_tuned", title="MPICH ROMIO tuned", hints=tuned),
            peer(name="ours_mpich", title="mpiio_ext on MPICH", ours=True),
        ]
    peers = []
    for name, component in (("ompio", "ompio"), ("ompi_romio", installation.romio)):
        if component:
            title, chosen = f"Open MPI {name.removeprefix('ompi_').upper()}", {"OMPI_MCA_io": component}
            peers += [
                peer(name=name, title=title, environment=chosen),
                peer(name=f"{name}_tuned", title=f"{title} tuned", environment=chosen, hints=tuned),
            ]
    return [*peers, peer(name="ours_openmpi", title="mpiio_ext on Open MPI", ours=True)]


def some_installations() -> list[Installation]:
    """Return the peers; raises BenchError if there are none."""
    found = find_installations()
    if not found:
        raise BenchError(
            "no MPI installation with this library and its benchmark program in C was found: run `make "
            "build` in a source tree first (a wheel has no such program)"
        )
    return found
