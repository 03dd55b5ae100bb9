"""What keeps a command that makes one page, or one table, from spending its time on what that does not need.

Problem. A page shall be there in two seconds, imports included. PyArrow imports pandas with the first Python value that
it converts, only to ask whether the value is one of pandas; that takes a fifth of a second. The collector of cyclic
garbage looks again and again at the hundred thousand objects that Ibis, DuckDB and PyArrow make while they are
imported, of which none is garbage. Ibis imports what writes SQL for twenty databases with the first one that is asked
for.

Algorithm. PyArrow asks for pandas once and keeps the answer; it gets "no" where nobody has imported pandas so far. What
is asked of PyArrow for pandas (``to_pandas``) imports it all the same, and from then on PyArrow knows it. Collecting is
put off to the end. The package of Ibis with the twenty gets a module that imports each of them when it is asked for;
where that does not go, as a later Ibis may have it otherwise, it becomes what Ibis has written.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

__all__ = ["quick_start"]

_COMPILERS = "ibis.backends.sql.compilers"


@contextlib.contextmanager
def quick_start() -> Iterator[None]:
    """Make one page or table, and nothing else, inside the ``with`` statement, or the function so decorated."""
    collecting = gc.isenabled()
    gc.disable()
    finder = _LateDialects()
    sys.meta_path.insert(0, finder)
    try:
        _without_pandas()
        yield
    finally:
        sys.meta_path.remove(finder)
        if collecting:
            gc.enable()


class _NoPandas(importlib.abc.MetaPathFinder):
    """Let the import of pandas fail as where it is not installed."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """Say that there is no pandas; others are looked for elsewhere."""
        if fullname == "pandas":
            raise ModuleNotFoundError("not looked for while PyArrow asks", name=fullname)


class _LateDialects(importlib.abc.MetaPathFinder):
    """Find Ibis' package of compilers, and let its modules be imported one by one."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """Return what is found without this finder, with another loader."""
        if fullname != _COMPILERS:
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if found is not None and found.loader is not None:
            found.loader = _LateLoader(found.loader)
        return found


class _LateLoader(importlib.abc.Loader):
    """Make a module whose attributes are its submodules, imported when they are asked for."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def exec_module(self, module: ModuleType) -> None:
        """Give the module a function for what it lacks."""

        def lacking(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            try:
                return importlib.import_module(f"{_COMPILERS}.{name}")
            except ModuleNotFoundError:
                del module.__dict__["__getattr__"]
                self._real.exec_module(module)
                return getattr(module, name)

        module.__dict__["__getattr__"] = lacking


def _without_pandas() -> None:
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
