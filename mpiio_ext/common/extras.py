"""Packages that only some jobs need: how to install a missing one.

Problem. The core needs cffi, click and pyelftools alone; a bench or an analysis needs more. A user who has not
installed that has to read one line that can be typed. The package itself is on no index, so that its name with an extra
would only be found beside its wheel.

Algorithm. The line names the packages of the extra that are not installed, by the metadata of this package. Guarantee:
every such line is made here.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from mpiio_ext.errors import MpiioExtError

#: A requirement of the metadata: the name, extras of it, versions; the oldest Python that needs it no more; the extra.
_REQUIREMENT = re.compile(
    r"([\w.-]+)(?:\[([\w,.-]+)\])?([^;]*)(?:;(?: *python_version *< *\W3\.(\d+)\W *and)? *extra *== *\W([\w-]+)\W)?"
)


def packages_of(extra: str) -> dict[str, str]:
    """Return the names of packages that an extra brings, and each as an argument of pip; {} without metadata."""
    found: dict[str, str] = {}
    try:
        requirements = importlib.metadata.requires("mpiio_ext") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    for name, extras, versions, before, own in filter(None, map(_parts, requirements)):
        if own != extra or (before and sys.version_info >= (3, int(before))):
            continue
        if name.replace("-", "_") == "mpiio_ext":
            found |= {name: text for each in extras.split(",") for name, text in packages_of(each).items()}
        else:
            found[name] = f"{name}{f'[{extras}]' if extras else ''}{versions.strip()}"
    return found


def _parts(requirement: str) -> tuple[str, ...] | None:
    found = _REQUIREMENT.fullmatch(requirement)
    return found and tuple(each or "" for each in found.groups())


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _make_build() -> str:
    """Return the command that completes CHECKOUT/build/MPI/venv if only ``make bench`` has made that environment."""
    folder = Path(sys.prefix).parent
    stamps = folder / "stamps"  # of scripts/setup
    if not (stamps / "editable").exists() or (stamps / "packages").exists():
        return ""
    return shlex.join(["make", "-C", str(folder.parent.parent), f"MPI={folder.name}", "build"])


def install_line(extra: str) -> str:
    """Return the command that installs the missing packages of an extra; all its packages, if none is missing."""
    if command := _make_build():
        return command
    packages = packages_of(extra)
    missing = [text for name, text in packages.items() if not _is_installed(name)]
    return shlex.join(["pip", "install", *(missing or packages.values() or [f"mpiio_ext[{extra}]"])])


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
    """Report packages that the block imports and that are not installed; errors inside a package are raised unchanged.

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
