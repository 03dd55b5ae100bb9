"""Packages that only some jobs need: how to install a missing one.

Problem. The core needs cffi, click and pyelftools alone; a bench or an analysis needs more. A user who has not
installed that has to read one line that can be typed. Guarantee: every such line is made here.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from mpiio_ext.errors import MpiioExtError


def _make_build() -> str:
    """Return the command that completes CHECKOUT/build/MPI/venv if only ``make bench`` has made that environment."""
    folder = Path(sys.prefix).parent
    stamps = folder / "stamps"  # of scripts/setup
    if not (stamps / "editable").exists() or (stamps / "packages").exists():
        return ""
    return shlex.join(["make", "-C", str(folder.parent.parent), f"MPI={folder.name}", "build"])


def install_line(extra: str) -> str:
    """Return the command that installs an extra."""
    if command := _make_build():
        return command
    return f"pip install 'mpiio_ext[{extra}]'"


class MissingExtraError(MpiioExtError, ImportError):
    """A package of an extra is not installed; the message names the command that installs it.

    Parameters
    ----------
    what : what needs it, the subject of the sentence.
    package : its name for `import`.
    extra : which brings it.
    """

    def __init__(self, what: str, package: str | None, extra: str) -> None:
        super().__init__(f"{what} needs {package}, which is not installed: {install_line(extra)}")


@contextlib.contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Report packages that the block imports and that are not installed; faults inside of them are not hidden.

    Parameters
    ----------
    extra, what : of `MissingExtraError`

    Raises
    ------
    MissingExtraError
        A package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if isinstance(error, MpiioExtError) or package in ("", "mpiio_ext"):
            raise
        raise MissingExtraError(what, package, extra) from error


def missing_here(package: str) -> None:
    """Let a package be missing in this process, which must be one of ours alone: PyArrow imports pandas if it can."""

    class Missing:
        @staticmethod
        def find_spec(name: str, _path: object = None, _target: object = None) -> None:
            if name == package:
                raise ModuleNotFoundError(name, name=name)

    sys.meta_path.insert(0, Missing)


def darshan_library(what: str, extra: str) -> str:
    """Return where libdarshan-util is: in the package ``darshan`` (not imported for that), or known to the linker.

    Parameters
    ----------
    what, extra : of `MissingExtraError`

    Raises
    ------
    MissingExtraError
        The package is not installed.
    """
    found = importlib.util.find_spec("darshan")
    if found is None or found.origin is None:
        raise MissingExtraError(what, "darshan", extra)
    folder = Path(found.origin).resolve().parent.parent / "darshan.libs"
    libraries = sorted(folder.glob("libdarshan-util*.so*"))
    return str(libraries[0]) if libraries else "libdarshan-util.so"
