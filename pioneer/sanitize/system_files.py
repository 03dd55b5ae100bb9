"""Files of the system and of the MPI library: what is done to them is no I/O of the application.

A launcher's session directories, shared-memory files and what libraries read at their start differ from run to run and
from rank to rank. Operations on them are masked, not dropped; the list can be replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["PATTERNS", "matcher"]

#: Regular expressions for the beginning of a file's name.
PATTERNS = (
    r"/dev(?:$|/(?!shm/)|/shm/(?:$|mpich|open_mpi|sem\.|ucx_|psm|cma|rocm_smi|cuda))",  # programs use /dev/shm as well
    r"/(?:proc|sys|etc|usr|lib|lib32|lib64|bin|sbin|opt|run|var)(?:/|$)",
    r"/tmp/rocmsmi_", r".*/(?:ompi\.|openmpi-sessions|prte\.|pmix-|pmix_|vader_segment|mpich_shm|hwloc)",
    # where the loader looks for libraries
    r".*/glibc-hwcaps(?:/|$)", r".*/lib(?:32|64)?(?:/[^/]+)?(?:/tls|/haswell|/avx512_1|/x86_64)+$",
    r".*/lib(?:32|64)?(?:/mpich|/openmpi)?$", r".*/etc/ucx/", r".*/ucx\.conf$",
    # where Python looks when it starts
    r".*/(?:pyvenv\.cfg|pybuilddir\.txt|Modules/Setup\.local)$", r".*\.pth$", r".*/site-packages(?:/|$)",
    r".*/lib/python\d[\d.]*(?:/|\.zip$|$)",
    r"/tmp/?$", r".*\.so(?:\.\d+)*$", r".*/__pycache__(?:/|$)", r".*\.py[co]?$",
)  # fmt: skip


def matcher(patterns: Iterable[str] = PATTERNS) -> re.Pattern[str]:
    """Return what matches a name that begins as one of the patterns says; no pattern matches nothing."""
    joined = "|".join(f"(?:{pattern})" for pattern in patterns)
    return re.compile(joined or r"(?!)")
