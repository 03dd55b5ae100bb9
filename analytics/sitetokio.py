"""Site files of pytokio as sites of this package.

pytokio's ``site.json`` has the same facts under other names: file systems by regular expressions of mount points, their
backends, and templates of files by source. What has no counterpart here is named, and left out.

Source: pytokio, tokio/config.py and its site.json.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mpiio_ext.analytics.errors import AnalyticsError

#: Key of pytokio -> source here; the values are templates, by file system or for the whole machine.
_FILES = {
    "hdf5_files": "lmt",
    "lfsstatus_fullness_files": "lfs-df",
    "lfsstatus_map_files": "lctl-dl",
    "mmperfmon_output_files": "mmperfmon",
    "darshan_log_dirs": "darshan",
}
_ROLES = {"datatarget": "data_targets", "mdtarget": "metadata_targets", "mdserver": "metadata_servers"}
_LITERAL = re.compile(r"\^(/[\w/-]+)")


class _Converter:
    """Takes pytokio's keys out of a document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._left = dict(document)
        self.systems: dict[str, dict[str, Any]] = {}
        self.files: list[dict[str, Any]] = []

    def _object(self, name: str) -> dict[str, Any]:
        found = self._left.pop(name, {})
        if not isinstance(found, dict):
            raise AnalyticsError(f"/{name}: is no object, as pytokio has it")
        return found

    def _system(self, name: str) -> dict[str, Any]:
        return self.systems.setdefault(name, {"kind": "other"})

    def mounts(self) -> None:
        """Take the mount points: literal ones, and patterns."""
        for pattern, name in self._object("mount_to_fsname").items():
            literal = _LITERAL.fullmatch(pattern)
            field, value = ("mounts", literal[1]) if literal else ("mount_patterns", pattern)
            self._system(str(name)).setdefault(field, []).append(value)

    def backends(self) -> None:
        """Take the names that servers have for file systems; pytokio has them of Lustre only."""
        for name, backend in self._object("fsname_to_backend_name").items():
            self._system(name).update(kind="lustre", backend=backend)

    def templates(self) -> None:
        """Take the templates of files."""
        for key, source in _FILES.items():
            given = self._left.pop(key, None)
            for name, paths in given.items() if isinstance(given, dict) else [(None, given)]:
                if paths is None:
                    continue
                entry = {"source": source, "path": f"{paths}/*.darshan" if source == "darshan" else paths}
                if name is not None and source != "darshan":
                    entry["file_system"] = name
                    self._system(name).update({"kind": "gpfs"} if source == "mmperfmon" else {})
                self.files.append(entry)

    def roles(self) -> None:
        """Take the patterns of GPFS' disks and servers, which pytokio has for all file systems together."""
        found: dict[str, list[str]] = {}
        for key in ("mmperfmon_lun_map", "mmperfmon_server_map"):
            for pattern, role in self._object(key).items():
                if role in _ROLES:
                    found.setdefault(_ROLES[role], []).append(pattern)
        for system in self.systems.values():
            if system["kind"] == "gpfs":
                system.update(found)

    def left(self) -> list[str]:
        """Return the keys that have no counterpart."""
        if self._left.get("lmt_timestep") == 5:  # steps of LMT are 5 s here, always
            del self._left["lmt_timestep"]
        return sorted(self._left)


def from_pytokio(document: object, time_zone: str = "UTC") -> tuple[dict[str, Any], list[str]]:
    """Return a site of pytokio as one of this package.

    Parameters
    ----------
    document : mapping
        pytokio's site.json.
    time_zone : of the machine; pytokio takes that of the process.

    Returns
    -------
    site : dict
        What :func:`mpiio_ext.analytics.site.load_site` takes, and site.json contains.
    left : list of str
        Keys of pytokio without counterpart.

    Raises
    ------
    AnalyticsError
        A key has not the form that pytokio gives it.
    """
    if not isinstance(document, Mapping):
        raise AnalyticsError("no site of pytokio: the document is no object")
    converter = _Converter(document)
    converter.mounts()
    converter.backends()
    converter.templates()
    converter.roles()
    site = {"time_zone": time_zone, "file_systems": converter.systems, "files": converter.files}
    return site, converter.left()
