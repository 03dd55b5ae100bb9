"""Whether the library is under a program, or can be put there.

Algorithm. Of a command line the launcher and ``mpiio-ext run`` are passed over, of a script its interpreter is taken.
The program's file shows whether a library can be put under it at all. Then the dynamic linker is asked twice, without
this library and as ``mpiio-ext run`` would start the program. The linker names the MPI library that the program gets,
and what its calls of MPI-IO are bound to. An interpreter of Python binds nothing itself; a line of Python in it prints
the binding. A second interpreter imports the modules of a script and prints whether an MPI library comes with them.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpiio_ext import elf
from mpiio_ext.abi import NAMES, VARIABLE, of_library, of_part
from mpiio_ext.common.children import run
from mpiio_ext.common.programs import PYTHON, script_of
from mpiio_ext.doctor import linker
from mpiio_ext.doctor.children import ask
from mpiio_ext.doctor.findings import Finding, bad, good, warn
from mpiio_ext.doctor.mpi import family_of
from mpiio_ext.launchers import LATER, launcher_family, plan

_MOST_SCRIPTS = 4
_RUN = ["mpiio-ext", "run"]
_MARK = "mpiio_ext doctor: "
#: Printed by a Python interpreter under the environment that the program would have.
_ASK_PYTHON = f"""
import ctypes, json
process, facts = ctypes.CDLL(None), {{}}
facts["loaded"] = hasattr(process, "mpiio_ext_interposed")
try:
    import mpi4py
    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    from mpi4py import MPI
    facts["mpi"] = MPI.Get_library_version().strip("\\0\\n ")
except BaseException as error:
    facts["error"] = f"{{type(error).__name__}}: {{error}}"
facts["interposed"] = facts["loaded"] and bool(process.mpiio_ext_interposed())
print("\\n{_MARK}" + json.dumps(facts))
"""

#: Printed by a Python interpreter without this library that has imported what a script imports, itself and by modules
#: beside it, which are read: a module that cannot be imported leaves the question open.
_ASK_IMPORTS = f"""
import ast, importlib, json, pathlib, re, sys
script = pathlib.Path(sys.argv[1]).resolve()
waiting, read, others, facts = {{script}}, set(), set(), {{}}
try:
    import mpi4py
    mpi4py.rc.initialize = mpi4py.rc.finalize = False
except BaseException:
    pass
try:
    while waiting:
        path = waiting.pop()
        read.add(path)
        found = set()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                found |= {{(each.name, "") for each in node.names}}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found |= {{(node.module, each.name) for each in node.names}}
        for name, part in found:
            top = script.parent / name.partition(".")[0]
            beside = {{each for each in [top.with_suffix(".py"), *top.rglob("*.py")] if each.exists()}}
            waiting |= beside - read
            others |= set() if beside else {{(name, part)}}
    for name, part in sorted(others):
        module = importlib.import_module(name)
        if part not in ("", "*") and not hasattr(module, part):
            importlib.import_module(f"{{name}}.{{part}}")
    maps = pathlib.Path("/proc/self/maps").read_text(errors="replace")
    facts["mpi"] = re.search(r"/libmpi(ch)?[._][^/]*$", maps, re.MULTILINE) is not None or "mpi4py.MPI" in sys.modules
except BaseException as error:
    facts["error"] = f"{{type(error).__name__}}: {{error}}"
print("\\n{_MARK}" + json.dumps(facts))
"""
_NO_MPI = "no MPI here: {}; this library speeds up MPI programs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The program that is examined, and the library that shall be under it.

    Attributes
    ----------
    name : as the command line calls it.
    script : that an interpreter runs; None: there is none.
    path : its file, of a script that of the interpreter.
    library : path of libmpiio_ext.so.
    environment : that doctor runs in.
    limit_s : seconds that a question may take.
    """

    name: str
    script: Path | None = None
    path: Path
    library: Path
    environment: Mapping[str, str]
    limit_s: float

    def is_python(self) -> bool:
        """Return whether it is an interpreter of Python."""
        return PYTHON.fullmatch(self.path.name) is not None

    def under(self) -> dict[str, str]:
        """Return the environment that ``mpiio-ext run`` would give it."""
        launch = plan([str(self.path)], library=str(self.library), settings={}, family="", environment=self.environment)
        return launch.environment


def _behind_run(words: Sequence[str]) -> list[str]:
    """Return the words behind ``mpiio-ext run [OPTIONS]``."""
    if "--" in words:
        return list(words[words.index("--") + 1 :])
    rest = list(words[2:])
    while rest and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in ("-H", "--hint", "--hints-file") else 1 :]
    return rest


def program_of(command: Sequence[str]) -> tuple[list[str], str]:
    """Return the program that a command line starts, with its arguments, and its launcher, "" without one.

    Behind a launcher the first word that is an executable file is taken for the program: values of its options mostly
    are none. ``env`` with its settings and ``mpiio-ext run`` are passed over.
    """
    words, launcher = list(command), ""
    while words:
        name = Path(words[0]).name
        if launcher_family(words[0], "openmpi") is not None:
            launcher = words[0]
            places = [i for i, word in enumerate(words[1:], 1) if not word.startswith("-") and shutil.which(word)]
            words = words[places[0] :] if places else []
        elif [name, *words[1:2]] == _RUN:
            words = _behind_run(words)
        elif name == "env" and len(words) > 1:
            words = words[1:]
            while words and ("=" in words[0] or words[0].startswith("-")):
                words = words[1:]
        else:
            break
    return words, launcher


def launch_of(command: Sequence[str]) -> list[str]:
    """Return the launcher's words in front of the program that start its ranks now; empty without a launcher."""
    words, launcher = program_of(command)
    front = list(command[: len(command) - len(words)])
    return front if words and launcher and not LATER & {*front} else []


def _preloads(environment: Mapping[str, str]) -> list[str]:
    return environment.get("LD_PRELOAD", "").replace(":", " ").split()


def without(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment whose LD_PRELOAD does not name this library."""
    kept = ":".join(word for word in _preloads(environment) if not _is_ours(word))
    rest = {name: value for name, value in environment.items() if name != "LD_PRELOAD"}
    return rest | ({"LD_PRELOAD": kept} if kept else {})


def _is_ours(path: str) -> bool:
    return Path(path).name.startswith("libmpiio_ext")


def _is_mpi(path: str) -> bool:
    return Path(path).name.startswith("libmpi") and not _is_ours(path)


def _interpreter(path: Path) -> str | None:
    """Return the interpreter in the first line of a script, None if the file is no script.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(256)
    if not head.startswith(b"#!"):
        return None
    words = head[2:].splitlines()[0].decode(errors="replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if "=" not in word and not word.startswith("-")]
    return words[0] if words else ""


def _resolve(name: str) -> tuple[Path, Path | None] | Finding:
    """Return the file of a program, and its script if it is one, or a finding if there is no such program."""
    key = "program.found"
    script: Path | None = None
    for _ in range(_MOST_SCRIPTS):
        found = shutil.which(name)
        if found is None and Path(name).exists():
            return bad(key, f"{name} may not be executed", f"chmod +x {name}", name=name)
        if found is None:
            return bad(key, f"{name} is not found", "name it by its path, or put its folder on PATH", name=name)
        try:
            next_name = _interpreter(Path(found))
        except OSError as error:
            text = f"{found} cannot be read: {error.strerror}"
            return bad(key, text, "it cannot be examined without the right to read it", name=found)
        if next_name is None:
            return Path(found).absolute(), script
        script, name = script or Path(found).absolute(), next_name
    return bad(key, f"{script}: scripts whose interpreters are scripts", "name the program itself", name=name)


def examine(
    command: Sequence[str], library: Path, environment: Mapping[str, str], limit_s: float = 20.0
) -> list[Finding]:
    """Return the findings about a program, from its file to the library that its calls are bound to.

    Parameters
    ----------
    command : program with arguments, possibly behind a launcher.
    library : path of libmpiio_ext.so.
    environment : that the program would be started in.
    limit_s : seconds that each question may take.
    """
    words, launcher = program_of(command)
    if not words:
        return [bad("program.found", f"{' '.join(command)}: no program in it", "name the program itself")]
    resolved = _resolve(words[0])
    if isinstance(resolved, Finding):
        return [resolved]
    path, script = resolved
    named = script_of(words[1:])[:1] if PYTHON.fullmatch(path.name) and script is None else []
    target = Target(
        name=words[0],
        script=script or next((Path(word) for word in named if Path(word).is_file()), None),
        path=path,
        library=library,
        environment=environment,
        limit_s=limit_s,
    )
    text = f"{words[0]}: {f'a script for {path}' if script else path}{f', started by {launcher}' if launcher else ''}"
    facts = {"name": words[0], "path": str(path), "script": str(script) if script else None}
    return [good("program.found", text, **facts, launcher=launcher or None), *_loading(target)]


def _loading(target: Target) -> list[Finding]:
    """Return whether libraries can be put under the program, and if so, the resulting findings."""
    key = "program.linking"
    binary = linker.header_of(target.path)
    if binary is None:
        return [bad(key, f"{target.path} is neither an ELF program nor a script with #!", "name the program itself")]
    if not binary.interpreter:
        text = f"{target.path} is linked statically: LD_PRELOAD has no effect on it"
        cray = "on Cray CRAYPE_LINK_TYPE=dynamic"
        return [bad(key, text, f"link it dynamically ({cray}): there is no static form of this library", static=True)]
    own = linker.header_of(target.library) if target.library.exists() else None
    if own is not None and own.machine != binary.machine:
        text = f"{target.path} is for {binary.machine}, this library for {own.machine}"
        return [bad(key, text, "install mpiio_ext for the program's processor", static=False)]
    if privileges := linker.privileges(target.path):
        text = f"{target.path} has {privileges}: the dynamic linker ignores LD_PRELOAD"
        advice = "use a copy of it without these rights (cp makes one), or link it with -lmpiio_ext"
        return [bad(key, text, advice, static=False, privileges=privileges)]
    return [good(key, f"dynamically, by {binary.interpreter}", static=False), *_bound(target, binary.interpreter)]


def _bound(target: Target, interpreter: str) -> list[Finding]:
    bare = linker.trace(target.path, interpreter, without(target.environment), target.limit_s)
    run = linker.trace(target.path, interpreter, target.under(), target.limit_s)
    if bare.trouble or run.trouble:
        return [warn("program.libraries", bare.trouble or run.trouble, "MPIOX_STATS=1 shows it in a run")]
    if missing := bare.missing():
        advice = "load the modules that it was built with, or set LD_LIBRARY_PATH"
        return [bad("program.libraries", f"not found: {', '.join(missing)}", advice, missing=missing)]
    ignored = [item for item in run.ignored if _is_ours(item[0])]
    if ignored:
        text = f"the dynamic linker ignores {ignored[0][0]} ({ignored[0][1]})"
        return [bad("program.under", text, "install mpiio_ext where this machine can read it")]
    if target.is_python():
        return _python(target)
    return [_program_mpi(target, bare, run), _under(target, bare, run), *_pnetcdf(bare, target.environment)]


def _pnetcdf(bare: linker.Trace, environment: Mapping[str, str]) -> list[Finding]:
    """Return a finding where PnetCDF moves data without MPI-IO: from 1.15 on it does, if it was built with GIO."""
    paths = [Path(path) for name, path in bare.libraries.items() if name.startswith("libpnetcdf.so")]
    if not paths or b"GIO library version" not in paths[0].read_bytes():
        return []
    key, facts = "program.pnetcdf", {"library": str(paths[0])}
    if "nc_driver=mpiio" in environment.get("PNETCDF_HINTS", "").replace(" ", ""):
        return [good(key, f"{paths[0]} moves data by MPI-IO (PNETCDF_HINTS)", **facts)]
    text = f"{paths[0]} has a driver of its own: its data calls do not reach MPI-IO, nor this library"
    advice = "export PNETCDF_HINTS=nc_driver=mpiio, or set the hint nc_driver in the program"
    return [warn(key, text, advice, **facts)]


def _program_mpi(target: Target, bare: linker.Trace, run: linker.Trace) -> Finding:
    """Return the MPI library that the program gets, and whether this library was built for it."""
    key = "program.mpi"
    theirs = bare.mpi()
    if not theirs and elf.defines(target.path, "MPI_Init"):
        text = "an MPI library is linked into it statically: its calls do not leave the program"
        return bad(key, text, "link the MPI library dynamically")
    if not theirs:
        later = "One that loads MPI at run time (dlopen) reaches this library only by the names"
        advice = f"is it the program? {later} that the dynamic linker binds"
        text = _NO_MPI.format("neither it nor its libraries need an MPI library")
        return warn(key, text, advice, abi=None)
    name, path = next(iter(theirs.items()))
    version = ask("library_version", path, environment=without(target.environment), limit_s=target.limit_s)
    first = " ".join(str(version.values.get("version", "")).partition("\n")[0].split())
    facts = {"abi": linker.abi_of(name), "library": path, "version": first or None}
    lead = f"{first or facts['abi']} ({path})"
    if other := [item for item in run.mpi() if item not in theirs]:
        ours = f"{lead}, but this mpiio_ext is for {linker.abi_of(other[0])} ({other[0]})"
        advice = f"install mpiio_ext in another environment with the program's MPI ({facts['abi']})"
        return bad(key, ours, f"{advice}: MPICC=mpicc pip install; `mpiio-ext help howto/install`", **facts)
    part = of_part(target.library)
    if part and of_library(name) not in (part, None):  # a wheel's library needs no MPI library by name
        chosen = f"{lead}, but the library that was chosen is for {NAMES[part]}"
        return bad(key, chosen, f"unset {VARIABLE}, or set it to {of_library(name)}", **facts)
    return good(key, lead, **facts)


def _under(target: Target, bare: linker.Trace, run: linker.Trace) -> Finding:
    """Return the library that the MPI-IO calls of a program, and of its libraries, are bound to with this library."""
    key = "program.under"
    calls = [item for item in run.bindings if item[2] != "MPI_Init" and not _is_mpi(item[0]) and not _is_ours(item[0])]
    # Fortran libraries that call C functions: MPICH's those of MPI, the mpi_f08 of Open MPI (not MPICH's) ompi_*_f.
    ours = [symbol for caller, callee, symbol in run.bindings if _is_mpi(caller) and _is_ours(callee)]
    through = {symbol.startswith("ompi_") for symbol in ours}
    others = {(callee, symbol) for _, callee, symbol in calls if not _is_ours(callee)}
    elsewhere = sorted(
        item for item in others if not (item[1].islower() and _is_mpi(item[0]) and ("_f08" in item[1]) in through)
    )
    linked = any(_is_ours(path) for path in bare.libraries.values())
    now = linked or any(_is_ours(word) for word in _preloads(target.environment))
    names = sorted({symbol for _, _, symbol in calls})
    facts = {"now": now, "linked": linked, "calls": names}
    if not calls:
        text = "no function of MPI-IO is called by it or by the libraries that it is linked with"
        advice = "there is nothing for this library to do, unless it loads libraries later (dlopen)"
        return warn(key, text, advice, **facts)
    if elsewhere:
        callee, symbol = elsewhere[0]
        text = f"{symbol} is bound to {callee} and does not reach this library"
        facts["elsewhere"] = [list(item) for item in elsewhere]
        if _is_mpi(callee):
            return bad(key, text, "it was not loaded: see LD_PRELOAD above, and mpiio-ext run --dry-run", **facts)
        return warn(key, text, f"preload this library first: LD_PRELOAD={target.library}:{callee}", **facts)
    how = "it is linked with it" if linked else "LD_PRELOAD is set" if now else f"by mpiio-ext run -- {target.name}"
    return good(key, f"{len(names)} functions of MPI-IO reach this library: {how}", **facts)


def _answer(target: Target, environment: Mapping[str, str], *words: str) -> tuple[dict[str, Any] | None, str]:
    """Return the output of lines of Python in the target's interpreter, and the reason if there is none."""
    command = [str(target.path), "-c", *words]
    ended = run(command, environment=environment, limit_s=target.limit_s, errors="output")
    lines = [line for line in ended.output.splitlines() if line.startswith(_MARK)]
    return (json.loads(lines[-1].removeprefix(_MARK)) if lines else None), ended.trouble or "it printed nothing"


def _python(target: Target) -> list[Finding]:
    """Return the MPI of a Python, and whether its calls reach the library when the library is preloaded."""
    facts, trouble = _answer(target, target.under(), _ASK_PYTHON)
    if facts is None:
        text = f"{target.path} does not work with the library ({trouble})"
        return [bad("program.under", text, "run it without this library; then mpiio-ext doctor without a program")]
    if "mpi" not in facts:
        text = _NO_MPI.format(f"{target.path} has no mpi4py that works ({facts.get('error', '')})")
        advice = "if the program uses MPI, install mpi4py in its environment; parallel h5py and netCDF4 need it, too"
        return [warn("program.mpi", text, advice, abi=None)]
    if target.script is not None:
        imported, _ = _answer(target, without(target.environment), _ASK_IMPORTS, str(target.script))
        if imported is not None and imported.get("mpi") is False:
            text = _NO_MPI.format(f"{target.script.name} imports nothing that loads an MPI library")
            advice = (
                "`mpiio-ext run --report FILE.html` shows its I/O all the same: `mpiio-ext help howto/python-loaders`"
            )
            return [warn("program.mpi", text, advice, abi=None)]
    version = " ".join(str(facts["mpi"]).splitlines()[0].split())
    return [good("program.mpi", version, version=version), _under_python(target, version, facts["interposed"])]


def _under_python(target: Target, version: str, interposed: bool) -> Finding:
    key, part, theirs = "program.under", of_part(target.library), family_of(version)
    if part in ("openmpi", "mpich") and theirs not in ("", part):
        text = f"this Python has {version}, but the library that was chosen is for {NAMES[part]}"
        return bad(key, text, f"export {VARIABLE}={theirs}", now=False)
    if not interposed:
        text = "MPI-IO of this Python does not reach this library: it is another MPI's"
        return bad(key, text, "install mpiio_ext with the MPI of this Python", now=False)
    now = any(_is_ours(word) for word in _preloads(target.environment))
    how = "LD_PRELOAD is set" if now else f"by mpiio-ext run -- {target.name}, or import mpiio_ext before mpi4py"
    return good(key, f"MPI-IO of this Python reaches this library: {how}", now=now)


def preloaded(environment: Mapping[str, str]) -> Finding:
    """Return whether everything that LD_PRELOAD names is there."""
    key, words = "environment.preload", _preloads(environment)
    gone = [word for word in words if "/" in word and not os.access(word, os.R_OK)]
    if gone:
        advice = "unset LD_PRELOAD, or correct it; mpiio-ext run sets it by itself"
        return bad(key, f"LD_PRELOAD names {gone[0]}, which cannot be read", advice, preload=words, missing=gone)
    ours = [number for number, word in enumerate(words) if _is_ours(word)]
    if front := words[: ours[0]] if ours else []:
        text = f"LD_PRELOAD names {', '.join(front)} in front of this library"
        return warn(key, text, "a tool that wraps MPI_File_* hides calls there: name this library first", preload=words)
    return good(key, f"LD_PRELOAD: {' '.join(words) or 'not set'}", preload=words)
