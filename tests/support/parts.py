"""Parts of the library that a build may leave out: what needs them is skipped there."""

from __future__ import annotations

import importlib.util
import inspect
import pathlib
import sys
from functools import cache

import pytest

#: {option of CMake: (a hint that asks for the part, words of the names and sources of tests that do)}
PARTS = {
    "MPIOX_SUBFILES": ("mpiox_subfiles=2", ("subfile", "stored_as_several")),
    "MPIOX_STAGED": ("mpiox_close=staged", ("staged", "mpiox_close", "looked_for")),
}
#: Of the build whose library the tests use, where it was built here.
CACHE = pathlib.Path(sys.prefix).parent / "cmake" / "CMakeCache.txt"


@cache
def missing(option: str) -> bool:
    """Tell whether this build lacks a part."""
    return CACHE.exists() and f"{option}:BOOL=OFF" in CACHE.read_text(encoding="utf-8")


def needed_by(item: pytest.Item) -> str | None:
    """Return the option of a part that a test speaks of, and this build lacks."""
    for option, (_, words) in PARTS.items():
        if not missing(option):
            continue
        text = item.nodeid + (inspect.getsource(item.function) if isinstance(item, pytest.Function) else "")
        if any(word in text for word in words):
            return option
    return None


def require(*packages: str) -> None:
    """Skip a module of tests unless these packages are there. They are not imported: each worker reads every module."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}", allow_module_level=True)
