"""Run an unchanged mpi4py script on some ranks while the others are its delegates.

``mpirun -n 6 python -m mpiio_ext.delegates --split 2 SCRIPT ARGUMENTS...``

``MPI.COMM_WORLD`` is replaced by the communicator of the ranks that go on. Code that takes the communicator from the
module ``mpi4py.MPI`` when it runs gets the new one: most scripts do so throughout. Extension modules that use the C
handle MPI_COMM_WORLD, and modules imported before with ``from mpi4py.MPI import COMM_WORLD``, do not.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from mpiio_ext.common.printing import echo
from mpiio_ext.errors import MpiioExtError  # mpiio_ext before mpi4py
from mpiio_ext.launchers import let_rank_0_speak


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m mpiio_ext.delegates",
        description="Run an mpi4py script on some ranks, with delegates on others.",
    )
    parser.add_argument("--split", type=int, required=True, metavar="N", help="ranks that become delegates")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS")
    return parser.parse_args(words)


def _missing(options: argparse.Namespace) -> str | None:
    """Return in words that the script or module does not exist; None if it exists."""
    if options.module:
        try:
            found = importlib.util.find_spec(options.script) is not None
        except ModuleNotFoundError:  # of the package that it would be in
            found = False
        return None if found else f"there is no module {options.script!r}"
    return None if Path(options.script).is_file() else f"there is no script {options.script!r}"


def _refuse(why: str) -> int:
    """Print the reason, once for all ranks: all ranks call this function."""
    if let_rank_0_speak(os.environ):
        echo(f"python -m mpiio_ext.delegates: {why}", err=True)
    return 2


def main(words: Sequence[str] | None = None) -> int:
    """Split MPI_COMM_WORLD and run the script on the ranks that are no delegates."""
    options = _arguments(words)
    missing = _missing(options)
    if missing is not None:
        return _refuse(missing)
    from mpi4py import MPI

    from mpiio_ext.delegates import split

    try:
        comm = split(MPI.COMM_WORLD, options.split)
    except MpiioExtError as error:
        return _refuse(str(error))
    if comm is None:
        return 0
    setattr(MPI, "COMM_WORLD", comm)  # noqa: B010  (final to type checkers)
    sys.argv = [options.script, *options.arguments]
    if options.module:
        sys.path[0] = ""
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(options.script).resolve().parent)
        runpy.run_path(options.script, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
