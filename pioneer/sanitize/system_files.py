"""Files of the system: the one table of rules, for PIONEER and for the tracer in C.

Problem. A launcher's session folders, shared memory and the files that libraries read when they start are no I/O of the
application, and differ from run to run. But a rule that is too wide hides files of the user.
Algorithm. The first rule that a name fits decides; a name that fits none is the program's. The generator of the tracer
(`csrc/tools/trace/generate.py`) loads this file alone and writes the rules in C. This module masks operations on the
system's files, and the tracer does not record them; both count them and report the counts. The files that `--only`
names are the program's.
Guarantee. The standard library suffices. A path that may belong to a user, such as `/usr/workspace` or `/var/tmp`, is
no file of the system.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

_LIB = ("lib", "lib32", "lib64")
_SOFTWARE = ("bin", "sbin", *_LIB, "libx32", "libexec", "share", "include", "etc", "src")
#: Files of MPI libraries in session folders, in memory, and beside the program's files.
#: `*`: any text without slashes, `**`: any text, `#`: a number; a slash at the end: the folder, and all in it.
OF_MPI = (
    "**/ompi.*.#/",
    "**/ompi.*/**",
    "**/openmpi-sessions*/**",
    "**/prte.*/**",
    "**/pmix.*/**",
    "**/pmix-*/**",
    "**/pmix_*/**",
    "**.locktest.#",
    "**/vader_segment.*",
    "**/sm_segment.*",
    "**/mpich_shm*",
    "/tmp/rocmsmi_*",
    *(f"/dev/shm/{name}*" for name in ("open_mpi", "mpich", "sem.", "ucx_", "psm", "cma", "rocm_smi", "cuda")),
    "**/etc/ucx/",
    "**/ucx.conf",
    "ucx.conf",
)
#: All rules; "!" in front: such files are the program's.
RULES = (
    *OF_MPI,
    # code: libraries, and the folders that the loader searches; modules of Python, and the folders that it searches
    "**.so",
    "**.so.#*",
    "**/glibc-hwcaps/",
    *(f"**/{lib}{end}" for lib in _LIB for end in ("", "/mpich", "/openmpi")),
    *(f"**/{lib}/**{name}" for lib in _LIB for name in ("tls", "haswell", "avx512_1", "x86_64")),
    "**.py",
    "**.pyc",
    "**.pyo",
    "**/__pycache__/",
    "**/site-packages/",
    "**/dist-packages/",
    "**/bin/python*",
    "**/pyvenv.cfg",
    "**/pybuilddir.txt",
    "**/Modules/Setup.local",
    *(f"**/{lib}/python#*/" for lib in _LIB),
    # folders of the system, without those in which people have files
    "!/dev/shm/**",
    "!/run/user/**",
    "!/run/media/**",
    "!/run/shm/**",
    "/",
    "/tmp",
    "/usr",
    "/usr/local",
    "/opt",
    "/var",
    "/proc/",
    "/sys/",
    "/dev/",
    "/etc/",
    "/boot/",
    "/run/",
    "/bin/",
    "/sbin/",
    "/libx32/",
    *(f"/{lib}/" for lib in _LIB),
    *(f"/{top}/{name}/" for top in ("usr", "usr/local", "opt/*", "opt/*/*") for name in _SOFTWARE),
    *(f"/var/{name}/" for name in ("run", "lock", "cache", "spool", "lib/sss", "lib/dbus")),
)


def expanded(rules: Iterable[str]) -> Iterator[str]:
    """Yield rules without those that end in a slash: the folder, and what is in it."""
    for rule in rules:
        yield rule.rstrip("/") or "/"
        if rule.lstrip("!") != "/" and rule.endswith("/"):
            yield f"{rule}**"


def import_folders(locations: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the folders that an editable installation searches when a program imports it, whether they exist or not.

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
    """Return the folders of this installation, if it is editable, without their contents."""
    finders = (getattr(finder, "submodule_search_locations", None) for finder in sys.meta_path)
    own = [locations for locations in finders if isinstance(locations, dict) and __package__.split(".")[0] in locations]
    return tuple(sorted(folder.rstrip("/") for locations in own for folder in import_folders(locations)))


#: The same with folders in which an editable installation of mpiio_ext searches its packages.
USUAL: tuple[str, ...] = (*RULES, *_own_folders())
_WORDS = {"**": ".*", "*": "[^/]*", "#": "[0-9]+"}


def expression(rules: Iterable[str]) -> str:
    """Return an expression for whole names that fit one of the rules; no rule begins with "!".

    What may begin anywhere stands behind one `.*`. Python, and RE2, which Arrow uses, read it alike.
    """
    found: dict[bool, list[str]] = {True: [], False: []}
    for rule in expanded(rules):
        words = [_WORDS.get(part) or re.escape(part) for part in re.split(r"(\*\*|\*|#)", rule) if part]
        found[words[0] == ".*"].append("".join(words[1:] if words[0] == ".*" else words))
    anywhere = [f".*(?:{'|'.join(found[True])})"] if found[True] else []
    return "|".join([*anywhere, *found[False]])


def matcher(rules: Iterable[str] = USUAL, *, only: Sequence[str] = (), below: str | None = None) -> re.Pattern[str]:
    """Return the expression that matches the names of files of the system.

    Parameters
    ----------
    rules : as `RULES`.
    only : patterns of names, as of `fnmatch`, that are the program's.
    below : so begin names that are the program's; None: no more.
    """
    text = r"(?!)"
    for kept, some in itertools.groupby(reversed([*expanded(rules)]), lambda rule: rule.startswith("!")):
        one = rf"(?:{expression(rule.lstrip('!') for rule in some)})\Z"
        text = f"(?!{one})(?:{text})" if kept else f"{one}|{text}"
    but = [fnmatch.translate(pattern) for pattern in only] + ([re.escape(below)] if below else [])
    return re.compile(f"(?!{'|'.join(but)})(?:{text})" if but else text, re.DOTALL)
