"""Loading the library: `import mpiio_ext` early, late, under LD_PRELOAD, from the repository root and elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mpiio_ext

pytestmark = [pytest.mark.mpi, pytest.mark.both]  # each family has its own library
ROOT = Path(__file__).resolve().parents[2]
MAPPED = ("partitioning", "delegates", "pioneer", "analytics")


def run(code: str, *, cwd: Path = ROOT, preload: bool = False) -> subprocess.CompletedProcess[str]:
    """Run Python code in a fresh process without an MPI launcher."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if preload:
        environment["LD_PRELOAD"] = str(mpiio_ext.get_library())
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_import_interposes_without_initialising_mpi() -> None:
    done = run(
        "import sys, mpiio_ext, ctypes\n"
        "flag = ctypes.c_int(-1)\n"
        "ctypes.CDLL(None).PMPI_Initialized(ctypes.byref(flag))\n"
        "print(mpiio_ext.interposed(), flag.value, 'mpi4py.MPI' in sys.modules)"
    )
    assert (done.stdout.split(), done.stderr) == (["True", "0", "False"], "")


def test_import_before_mpi4py() -> None:
    done = run("import mpiio_ext\nfrom mpi4py import MPI\nprint(mpiio_ext.interposed())")
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


def test_import_after_mpi4py_says_what_to_do() -> None:
    done = run(
        "from mpi4py import MPI\n"
        "import mpiio_ext\n"
        "try:\n"
        "    mpiio_ext.stats.total()\n"
        "except ImportError as error:\n"
        "    print([c.__name__ for c in type(error).__mro__])\n"
        "    print(error)\n"
    )
    assert done.returncode == 0, done.stderr
    bases, message = done.stdout.strip().split("\n")
    assert f"MpiioExtWarning: {message}" in done.stderr
    assert "'MpiioExtError'" in bases
    assert "mpi4py.MPI" in message
    assert "import mpiio_ext" in message
    assert f"LD_PRELOAD={mpiio_ext.get_library()}" in message


def test_import_after_mpi4py_under_preload() -> None:
    done = run("from mpi4py import MPI\nimport mpiio_ext\nprint(mpiio_ext.interposed())", preload=True)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "import mpiio_ext.analytics",
        "from mpiio_ext.pioneer import WorkloadPath",
        "import mpiio_ext.partitioning, mpiio_ext.layout; mpiio_ext.layout.inspect('.')",
        "import importlib; importlib.import_module('mpiio_ext.analytics')",
    ],
)
def test_tools_are_imported_after_mpi4py(words: str) -> None:
    done = run(f"from mpi4py import MPI\n{words}\nimport mpiio_ext\nprint(mpiio_ext.interposed())")
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "from mpiio_ext import Hints\nHints().info()",
        "from mpiio_ext.hints import in_force\nin_force()",
        "import mpiio_ext\nmpiio_ext.stats.calls()",
        *(
            f"import mpiio_ext.analytics\nimport mpiio_ext\nmpiio_ext.{use}"
            for use in ("Hints().info()", "hints.in_force()")
        ),
        "import mpiio_ext.analytics, mpiio_ext.stats\nmpiio_ext.stats.total()",
    ],
)
def test_what_needs_the_library_under_the_program_is_refused_after_mpi4py(words: str) -> None:
    done = run(f"from mpi4py import MPI\n{words}")
    assert done.returncode == 1
    assert "LoadError: mpiio_ext is imported after mpi4py.MPI, too late to wrap MPI_File_*" in done.stderr


#: Uses each public name, and prints those that it has used.
READS = """
import warnings
warnings.simplefilter("ignore")
{before}
import mpiio_ext
{behind}
used = {{name: getattr(mpiio_ext, name) for name in mpiio_ext.__all__}}
hints = used["Hints"](cb_nodes=4, partition="auto")
assert hints.items() == {{"cb_nodes": "4", "mpiox_partition": "auto"}} and hints.environment()
assert used["hints"].registry() and used["hints"].problems() == () and "cb_nodes" in used["hints"].markdown_table()
assert used["stats"].numbers() and used["stats"].FileStats is used["FileStats"]
assert used["layout"].inspect(".").facts and used["layout"].registry()
assert used["get_library"]().exists() and used["get_include"]().exists()
assert used["run_report"]("tests/samples/diagnosis/restart-4-2-plain.darshan").lines()
print(used["interposed"](), *used)
"""


@pytest.mark.parametrize(
    ("before", "behind"),
    [("import h5py", ""), ("from mpi4py import MPI", ""), ("", "import h5py\nfrom mpi4py import MPI")],
)
def test_public_names_work_in_both_orders(before: str, behind: str) -> None:
    done = run(READS.format(before=before, behind=behind))
    assert done.stdout.split() == [str(not before), *mpiio_ext.__all__], done.stderr


def test_import_after_another_user_of_mpi() -> None:
    done = run(
        "import ctypes, mpiio_ext._load as load_module\n"  # runs mpiio_ext/__init__ and so loads early
        "print(load_module._loaded_mpi() is not None)"
    )
    assert done.stdout.strip() == "True", done.stderr
    done = run(
        "import ctypes\n"
        "for name in ('libmpi.so.40', 'libmpi.so.12'):\n"
        "    try: ctypes.CDLL(name)\n"
        "    except OSError: pass\n"
        "    else: break\n"
        "else: raise SystemExit('not found')\n"
        "import mpiio_ext\n"
    )
    if done.stderr.strip() == "not found":
        pytest.skip("the MPI library is not on the linker's path, so that only its users can load it")
    assert "too late" in done.stderr


@pytest.mark.parametrize("folder", ["root", "elsewhere"])
def test_subpackages_are_found(folder: str, tmp_path: Path) -> None:
    cwd = ROOT if folder == "root" else tmp_path
    names = [f"mpiio_ext.{name}" for name in MAPPED]
    done = run(f"import importlib\nfor name in {names}:\n    print(importlib.import_module(name).__file__)", cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert all(Path(path).parent.name == name for path, name in zip(done.stdout.split(), MAPPED, strict=True))


def test_subpackages_do_not_leak_into_the_top_level(tmp_path: Path) -> None:
    done = run(f"import importlib.util as u\nprint([n for n in {MAPPED} if u.find_spec(n)])", cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stderr


def test_errors_are_standard_errors_too() -> None:
    assert issubclass(mpiio_ext.LoadError, ImportError)
    assert issubclass(mpiio_ext.ArgumentError, ValueError)
    assert issubclass(mpiio_ext.FileSystemError, OSError)
    for name in ("LoadError", "ArgumentError", "FileSystemError"):
        assert issubclass(getattr(mpiio_ext, name), mpiio_ext.MpiioExtError)


#: Put in front of everything by PYTHONPATH: the library cannot be loaded.
SABOTAGE = """
import ctypes

class Broken(ctypes.CDLL):
    def __init__(self, name=None, *args, **kwargs):
        if str(name).endswith("libmpiio_ext.so"):
            raise OSError(f"{name}: cannot open shared object file")
        super().__init__(name, *args, **kwargs)

ctypes.CDLL = Broken
"""


@pytest.mark.parametrize("words", [["-m", "mpiio_ext.delegates", "--help"], ["-m", "mpiio_ext.bench", "--help"]])
def test_commands_without_the_library_say_one_line(tmp_path: Path, words: list[str]) -> None:
    """A missing library is a line and a status, not a traceback; a program that imports the package gets the error."""
    (tmp_path / "sitecustomize.py").write_text(SABOTAGE, encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"} | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("mpiio_ext: cannot load ") and done.stderr.count("\n") == 1, done.stderr
    done = subprocess.run(
        [sys.executable, "-c", "import mpiio_ext"], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1 and "LoadError: cannot load" in done.stderr
