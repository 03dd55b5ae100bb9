"""libmpiio_ext_engine.so, loaded after the MPI library: see csrc/tools/engine/mpiio_ext_engine.h."""

from __future__ import annotations

import functools
import re
from typing import Any

from mpiio_ext._load import get_include, get_library


@functools.cache
def engine() -> tuple[Any, Any]:
    """Return cffi's ffi and lib of the engine.

    Raises
    ------
    OSError
        The library is not installed.
    """
    from cffi import FFI

    header = (get_include() / "mpiio_ext_engine.h").read_text(encoding="utf-8")
    found = re.search(r"/\* engine: begin \*/(.*)/\* engine: end \*/", header, re.DOTALL)
    if found is None:
        raise OSError(f"{get_include() / 'mpiio_ext_engine.h'}: the markers of the engine's interface are missing")
    ffi = FFI()
    ffi.cdef(found[1])
    return ffi, ffi.dlopen(str(get_library().with_name("libmpiio_ext_engine.so")))
