"""mpiio_ext: an MPI-IO middleware extension put under unchanged programs.

``import mpiio_ext`` before ``mpi4py.MPI`` (or h5py, or netCDF4) loads libmpiio_ext.so so that MPI_File_* of this
process goes through it. Importing neither initialises MPI nor needs an MPI launch. A later import warns that it is too
late. Then `Hints.info`, `hints.in_force`, `hints.of` and the numbers of `mpiio_ext.stats` raise `LoadError`, because
they need the library under the program. `run_report`, `layout` and other tools work at any time.

Subpackages: `mpiio_ext.partitioning` (file domains), `mpiio_ext.delegates` (I/O delegates), `mpiio_ext.pioneer`
(traces, synthesis), `mpiio_ext.analytics` (logs). None of them is imported here.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext._load import get_include, get_library, interposed, load, load_for_tools
from mpiio_ext.errors import ArgumentError, FileSystemError, LoadError, MpiioExtError

if TYPE_CHECKING:
    from mpiio_ext import hints, layout, stats
    from mpiio_ext.analytics.run.shown import run_report
    from mpiio_ext.hints import Hints
    from mpiio_ext.stats import FileStats, RunStats

__all__ = [
    "ArgumentError",
    "FileStats",
    "FileSystemError",
    "Hints",
    "LoadError",
    "MpiioExtError",
    "RunStats",
    "__version__",
    "get_include",
    "get_library",
    "hints",
    "interposed",
    "layout",
    "run_report",
    "stats",
]

# The one place that states the version: pyproject.toml and CMakeLists.txt read it from here.
__version__ = "0.1.0"

#: Imported when first used, so that `import mpiio_ext` stays quick on every rank.
_SUBMODULES = {"hints": "mpiio_ext.hints", "layout": "mpiio_ext.layout", "stats": "mpiio_ext.stats"}
_LAZY = {
    "FileStats": "mpiio_ext.stats",
    "Hints": "mpiio_ext.hints",
    "RunStats": "mpiio_ext.stats",
    "run_report": "mpiio_ext.analytics.run.shown",
}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(_SUBMODULES[name])
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return list(__all__)


def _module() -> str:
    """Return the module that `python -m` runs in this process, or an empty string."""
    words = [*sys.orig_argv, ""]
    return words[words.index("-m") + 1] if "-m" in words else ""


def _is_tool() -> bool:
    """Return whether this process is a command of `mpiio-ext` except ``bench``, which runs with the extension."""
    is_command = _module() == "mpiio_ext" or Path(sys.argv[0] if sys.argv else "").name == "mpiio-ext"
    return is_command and sys.argv[1:2] != ["bench"]


def _wanted() -> str:
    """Return the module whose import has begun this one: that of `mpiio_ext.analytics` is first one of `mpiio_ext`."""
    name, frame = __name__, sys._getframe(1).f_back
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        name, frame = frame.f_locals.get("name") or name, frame.f_back
    return str(name)


#: Modules for programs that need the library under their MPI_File_*; others are tools, which need it nowhere.
_FOR_PROGRAMS = (__name__, "mpiio_ext.hints", "mpiio_ext.stats")

# A path that `mpiio-ext pioneer replay` carries out must meet the MPI library that the program met.
try:
    if _is_tool():
        load_for_tools()
    else:
        load(asked=_wanted() in _FOR_PROGRAMS)
except LoadError as _error:
    if _is_tool() or _module().split(".")[0] == "mpiio_ext":  # whose user wants a line, not a traceback
        raise SystemExit(f"mpiio_ext: {_error}") from None
    raise
