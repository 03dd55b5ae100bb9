"""How LD_PRELOAD and MPIOX_* reach the ranks of a program, whichever way it is started.

``mpiexec -n 4 mpiio-ext run -- ./app``: each rank runs ``mpiio-ext``, which sets the variables and becomes ``./app``.

``mpiio-ext run -- mpiexec -n 4 ./app``: the starter must hand the variables on to ranks that may live on other nodes,
and should not itself run with the library preloaded, which would map an MPI library into it and into every daemon. So
LD_PRELOAD is not put into the starter's environment but into its options, in front of the user's own:

- Open MPI (mpirun, mpiexec, orterun, prterun): ``-x LD_PRELOAD=… -x MPIOX_…``, repeated behind every ``:`` of a
  command line of several programs, because ``-x`` holds for one of them. When ``OMPI_MCA_mca_base_env_list`` is set,
  Open MPI refuses ``-x``, so the variables are appended to that list instead.
- MPICH's Hydra (mpiexec, mpirun, mpiexec.hydra): ``-genv LD_PRELOAD …``; it passes the whole environment on by itself.
- Slurm's srun: ``--export=ALL,LD_PRELOAD=…``, repeated like ``-x``; it passes the environment on by itself. A
  value in its own environment would be stronger (seen with 22.05), so LD_PRELOAD is taken out of that.
- Anything else is taken for the program itself.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["RANK_VARIABLES", "Launch", "launched_rank", "let_rank_0_speak", "plan", "starter_family"]

_OPENMPI = frozenset({"orterun", "prterun", "mpirun.openmpi", "mpiexec.openmpi"})
_HYDRA = frozenset({"mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich"})
_EITHER = frozenset({"mpirun", "mpiexec"})
_ENV_LIST = "OMPI_MCA_mca_base_env_list"
_SPEAKING_S = 1.0
#: Name of the tracer's library, which goes in front of every other.
TRACER = "libmpiio_ext_trace.so"
#: In which starters tell a process its rank.
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What to execute.

    Attributes
    ----------
    arguments : program and arguments.
    environment : complete environment.
    """

    arguments: tuple[str, ...]
    environment: dict[str, str]


def launched_rank(environment: Mapping[str, str]) -> int:
    """Return the rank that a starter has given this process; 0 where none has."""
    values = (environment[name] for name in RANK_VARIABLES if environment.get(name, "").isdecimal())
    return int(next(values, "0"))


def let_rank_0_speak(environment: Mapping[str, str]) -> bool:
    """Return whether this process is to say what all ranks have found; the others wait, lest a starter end it first."""
    if launched_rank(environment) == 0:
        return True
    time.sleep(_SPEAKING_S)
    return False


def starter_family(program: str, default: str) -> str | None:
    """Return which kind of starter ``program`` is: "openmpi", "hydra", "slurm", or None for anything else.

    Parameters
    ----------
    program : first word of the command.
    default : MPI family of the library, "openmpi", "mpich" or "mpiabi"; decides where a name alone does not. "unknown":
        nothing does, and "unknown" is returned then.
    """
    name = Path(program).name
    if name == "srun":
        return "slurm"
    if name in _OPENMPI:
        return "openmpi"
    if name in _HYDRA:
        return "hydra"
    if name not in _EITHER:
        return None
    found = shutil.which(program)
    real = Path(found).resolve().name if found else name
    if real in _OPENMPI or "openmpi" in real:
        return "openmpi"
    if real in _HYDRA or "hydra" in real or "mpich" in real:
        return "hydra"
    return default if default in ("openmpi", "unknown") else "hydra"


def _preloaded(library: str, environment: Mapping[str, str]) -> str:
    present = environment.get("LD_PRELOAD", "").replace(":", " ").split()
    words = list(dict.fromkeys([*library.split(":"), *present]))
    return ":".join(sorted(words, key=lambda word: Path(word).name != TRACER))  # the tracer sees what the program calls


def plan(
    command: Sequence[str], *, library: str, settings: Mapping[str, str], family: str, environment: Mapping[str, str]
) -> Launch:
    """Work out what to execute for ``mpiio-ext run -- COMMAND``.

    Parameters
    ----------
    command : program or starter, with arguments; not empty.
    library : path of libmpiio_ext.so, of the tracer, or of both with ":" between them.
    settings : MPIOX_* variables to set.
    family : MPI family of the library, "openmpi" or "mpich".
    environment : the present environment.
    """
    result = {**environment, **settings}
    preload = _preloaded(library, environment)
    kind = starter_family(command[0], family)
    if kind is None:
        return Launch(arguments=tuple(command), environment=result | {"LD_PRELOAD": preload})
    starter, *rest = command
    exported = sorted(name for name in result if name.startswith("MPIOX_"))
    if kind == "hydra":
        return Launch(arguments=(starter, "-genv", "LD_PRELOAD", preload, *rest), environment=result)
    options: list[str] = []
    if kind == "slurm":
        options = [f"--export=ALL,LD_PRELOAD={preload}"]
        result.pop("LD_PRELOAD", None)
    elif environment.get(_ENV_LIST):
        result[_ENV_LIST] = ";".join([environment[_ENV_LIST], f"LD_PRELOAD={preload}", *exported])
    else:
        options = [word for name in [f"LD_PRELOAD={preload}", *exported] for word in ("-x", name)]
    arguments = [starter, *options]
    for word in rest:
        arguments += [word, *options] if word == ":" else [word]
    return Launch(arguments=tuple(arguments), environment=result)


def execute(launch: Launch) -> None:
    """Replace this process by the launch. Returns only by raising OSError."""
    os.execvpe(launch.arguments[0], launch.arguments, launch.environment)
