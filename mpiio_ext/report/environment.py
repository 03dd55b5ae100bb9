"""The machine behind the numbers, in words, and the differences of two environments.

All recorded facts are shown: known keys under words of their own and in a fixed order, keys of later versions behind
them. A difference is what changes figures: of machine, MPI library, file system, ranks, libraries, variables, sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mpiio_ext.common.units import size_text

#: Key of the record -> words; in the order of the page. Keys that are not here come behind, under their own name.
_TITLES = {
    "started": "Started",
    "command_line": "Command",
    "mpi_library": "MPI library",
    "mpi_standard": "MPI standard",
    "job": "Job of the scheduler",
    "ranks": "Ranks",
    "ranks_per_host": "Ranks per host",
    "hosts": "Hosts",
    "cpu_model": "Processor",
    "cpus_online_count": "Processors online",
    "cpus_of_rank_0_count": "Processors of rank 0",
    "memory_bytes": "Memory",
    "machine": "Architecture",
    "kernel": "Operating system",
    "path": "Files in",
    "file_system_type": "File system",
    "file_system_mount": "Mounted at",
    "file_system_free_bytes": "Free space",
    "git_revision": "Revision",
}
#: What makes numbers incomparable.
_DECISIVE = (
    "ranks",
    "ranks_per_host",
    "cpu_model",
    "cpus_online_count",
    "machine",
    "mpi_library",
    "file_system_type",
    "kernel",
)
#: Variables that Open MPI's own launcher sets for its ranks: they do not depend on how the bench was started.
_LAUNCHER = re.compile(
    r"OMPI_MCA_(ess|orte|pmix|plm_slurm_args|initial_wdir|mpi_oversubscribe|shmem_RUNTIME|hwloc).*"
    r"|PMIX_MCA_.*|PRTE_MCA_.*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something that two environments do not have in common."""

    what: str
    old: str
    new: str


def _text(key: str, value: Any) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and key.endswith("_bytes"):
        return size_text(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(name, item)}" for name, item in value.items() if item is not None)
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(key, item) for item in value)
    return str(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _title(key: str) -> str:
    return _TITLES.get(key, key.removesuffix("_bytes").removesuffix("_s").replace("_", " ").capitalize())


def own_variables(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return the recorded variables that somebody set, without those that the launcher sets for its ranks."""
    recorded = _mapping(environment.get("variables"))
    return {str(name): str(value) for name, value in recorded.items() if not _LAUNCHER.fullmatch(str(name))}


def describe(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (title, text) of everything that is recorded, the important first."""
    keys = [*(key for key in _TITLES if key in environment), *(key for key in environment if key not in _TITLES)]
    rows = [(_title(key), _text(key, environment[key])) for key in keys if key not in ("variables", "versions")]
    if environment.get("versions"):
        rows.append(("Versions", _text("versions", environment["versions"])))
    variables = own_variables(environment)
    if variables:
        rows.append(("Variables", "\n".join(f"{name}={value}" for name, value in sorted(variables.items()))))
    return [(title, text) for title, text in rows if text]


def headline(environment: Mapping[str, Any]) -> str:
    """Return the environment in one line: ranks, processors, MPI library, file system."""
    words = []
    if environment.get("ranks") is not None:
        words.append(f"{environment['ranks']} ranks")
    if environment.get("cpus_online_count") is not None:
        words.append(f"{environment['cpus_online_count']} processors ({environment.get('cpu_model') or 'unknown'})")
    if environment.get("mpi_library"):
        words.append(str(environment["mpi_library"]).split(",")[0])
    if environment.get("file_system_type"):
        words.append(f"files on {environment['file_system_type']}")
    return ", ".join(words)


def _settings(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a configuration that changes the measurements."""
    settings = {f"size: {name}": value for name, value in _mapping(configuration.get("sizes")).items()}
    return settings | {"hints": configuration.get("hints") or {}, "read shift": configuration.get("read_shift")}


def _compare(old: Mapping[str, Any], new: Mapping[str, Any], keys: Iterable[str]) -> list[Difference]:
    return [
        Difference(what=_title(key), old=_text(key, old.get(key)) or "none", new=_text(key, new.get(key)) or "none")
        for key in keys
        if old.get(key) != new.get(key)
    ]


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], old_settings: Mapping[str, Any], new_settings: Mapping[str, Any]
) -> list[Difference]:
    """Return the differences of two runs of the bench that change its figures.

    Parameters
    ----------
    old, new : environments.
    old_settings, new_settings : configurations.

    Returns
    -------
    Machine, operating system, MPI library, file system, ranks, versions of libraries, variables, sizes and hints that
    differ. Host names, dates, paths and the revision, which are meant to differ, are not among them.
    """
    found = _compare(old, new, _DECISIVE)
    versions = [
        {
            f"version of {name}": value
            for name, value in _mapping(side.get("versions")).items()
            if name not in ("mpiio_ext", "python", "pyarrow")
        }
        for side in (old, new)
    ]
    found += _compare(versions[0], versions[1], dict.fromkeys([*versions[0], *versions[1]]))
    variables = own_variables(old), own_variables(new)
    found += [
        Difference(what=name, old=variables[0].get(name, "not set"), new=variables[1].get(name, "not set"))
        for name in sorted(set(variables[0]) | set(variables[1]))
        if variables[0].get(name) != variables[1].get(name)
    ]
    settings = _settings(old_settings), _settings(new_settings)
    return found + _compare(settings[0], settings[1], dict.fromkeys([*settings[0], *settings[1]]))
