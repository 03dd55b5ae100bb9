"""Files of the system and of the MPI library: what is done to them is no I/O of the application.

A launcher's session directories, shared-memory files and what libraries read at their start differ from run to run and
from rank to rank. Operations on them are masked, not dropped; the list can be replaced.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence

#: Regular expressions for the beginning of a file's name.
_USUAL = (
    r"/dev(?:$|/(?!shm/)|/shm/(?:$|mpich|open_mpi|sem\.|ucx_|psm|cma|rocm_smi|cuda))",  # programs use /dev/shm as well
    r"/(?:proc|sys|etc|usr|lib|lib32|lib64|bin|sbin|opt|run|var)(?:/|$)",
    r"/tmp/rocmsmi_", r".*/(?:ompi\.|openmpi-sessions|prte\.|pmix-|pmix_|vader_segment|mpich_shm|hwloc)",
    # where the loader looks for libraries, UCX for its settings: in the working folder as well, by a relative name
    r".*/glibc-hwcaps(?:/|$)", r".*/lib(?:32|64)?(?:/[^/]+)?(?:/tls|/haswell|/avx512_1|/x86_64)+$",
    r".*/lib(?:32|64)?(?:/mpich|/openmpi)?$", r".*/etc/ucx/", r"(?:.*/)?ucx\.conf$",
    # where Python looks when it starts
    r".*/(?:pyvenv\.cfg|pybuilddir\.txt|Modules/Setup\.local)$", r".*\.pth$", r".*/site-packages(?:/|$)",
    r".*/lib/python\d[\d.]*(?:/|\.zip$|$)",
    r"/tmp/?$", r".*\.so(?:\.\d+)*$", r".*/__pycache__(?:/|$)", r".*\.py[co]?$",
)  # fmt: skip


def import_folders(locations: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the folders that an editable installation looks for when a program imports it, there or not.

    Parameters
    ----------
    locations : folders of each package, by its whole name, as scikit-build-core's finder has them.
    """
    found = {folder for folders in locations.values() for folder in folders}
    for name in locations:
        parent, _, child = name.rpartition(".")
        found |= {f"{folder.rstrip('/')}/{child}" for folder in locations.get(parent, ())}
    return found


def _own_folders() -> tuple[str, ...]:
    """Return a pattern for the folders of this installation, where it is editable, and not for what is below them."""
    finders = (getattr(finder, "submodule_search_locations", None) for finder in sys.meta_path)
    own = [locations for locations in finders if isinstance(locations, dict) and __package__.split(".")[0] in locations]
    folders = sorted(folder for locations in own for folder in import_folders(locations))
    return (rf"(?:{'|'.join(map(re.escape, folders))})/?$",) if folders else ()


#: The same of an editable installation of mpiio_ext, which looks for its packages in its sources.
PATTERNS: tuple[str, ...] = (*_USUAL, *_own_folders())


def matcher(patterns: Iterable[str] = PATTERNS) -> re.Pattern[str]:
    """Return what matches a name that begins as one of the patterns says; no pattern matches nothing."""
    joined = "|".join(f"(?:{pattern})" for pattern in patterns)
    return re.compile(joined or r"(?!)")
